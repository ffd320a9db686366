// The command line's side of replaying: see replay.hpp.
#include "core/error.hpp"
#include "sim/replay/replay.hpp"

namespace octavo::sim {
namespace {

std::string counted(std::uint64_t count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

}  // namespace

int replay_command(const std::filesystem::path& log, bool verify, std::ostream& out,
                   std::ostream& err) {
  try {
    if (!verify) {
      write_json_lines(log, out);
      return 0;
    }
    const replay_report report = verify_log(log);
    if (report.difference) {
      out << describe(*report.difference) << '\n';
      return 1;
    }
    out << counted(report.records, "record") << " of " << counted(report.replicas, "replica")
        << " replayed: all bytes equal (hash " << to_hex(report.hash) << ")\n";
    return 0;
  } catch (const input_error& problem) {
    err << problem.what() << '\n';
    return 2;
  }
}

}  // namespace octavo::sim
