// One run: see run.hpp.
#include "sim/cli/run.hpp"

#include <fstream>

#include <nlohmann/json.hpp>

#include "actors/wall_clock.hpp"
#include "core/error.hpp"
#include "sim/cli/progress.hpp"
#include "sim/report/files.hpp"
#include "sim/report/text.hpp"
#include "traces/chrome_trace.hpp"
#include "traces/reader.hpp"

namespace octavo::sim {

namespace {

// A Chrome trace on disk, while the run that fills it goes on.
class chrome_trace_file {
 public:
  chrome_trace_file(const std::string& path, const traces::trace& trace)
      : path_(path), out_(path, std::ios::binary | std::ios::trunc) {
    if (!out_) throw input_error(path + ": cannot be written");
    writer_.emplace(
        out_, [&trace](std::uint64_t id) { return trace.name_of(static_cast<std::uint32_t>(id)); });
  }
  decision_observer* observer(std::uint32_t replica) { return &writer_->replica(replica); }
  void close() {
    writer_->finish();
    out_.flush();
    if (!out_) throw input_error(path_ + ": could not be written to the end");
  }

 private:
  std::string path_;
  std::ofstream out_;
  std::optional<traces::chrome_trace_writer> writer_;
};

}  // namespace

finished_run execute_run(prepared_run& run) {
  finished_run finished;
  wait_observer waits;
  run.simulation.observers.push_back(&waits);
  const double start = actors::wall_seconds();
  finished.outcome = simulate(run.simulation);
  finished.wall_s = actors::wall_seconds() - start;
  run.simulation.observers.pop_back();
  finished.summary = summarize(run, finished.outcome, waits.limit());
  return finished;
}

int run_once(const sim_options& options, std::ostream& out, std::ostream& err) {
  const auto trace = std::make_shared<traces::trace>(traces::read_trace(options.trace));
  prepared_run run = prepare_run(options, trace);
  std::optional<traces::log_file_writer> log;
  if (!options.decision_log.empty()) {
    log.emplace(options.decision_log);
    run.simulation.log_file = &*log;
  }
  std::optional<chrome_trace_file> chrome;
  if (!options.chrome_trace.empty()) {
    chrome.emplace(options.chrome_trace, *trace);
    run.simulation.observe = [&](std::uint32_t replica) { return chrome->observer(replica); };
  }
  if (!options.quiet) run.simulation.progress = make_progress_bar(err);
  const finished_run finished = execute_run(run);
  if (!options.quiet) clear_progress_bar(err);
  if (log) log->close();
  if (chrome) chrome->close();
  if (!options.quiet) print_report(run, finished.summary, finished.wall_s, out);
  if (!options.out_json.empty()) {
    write_file(options.out_json, [&](std::ostream& file) {
      file << to_json(run, finished.summary, finished.wall_s).dump(2) << '\n';
    });
  }
  if (!options.out_csv.empty()) {
    write_file(options.out_csv,
               [&](std::ostream& file) { write_requests_csv(run, finished.outcome, file); });
  }
  return 0;
}

}  // namespace octavo::sim
