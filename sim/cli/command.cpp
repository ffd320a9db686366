// `sim`: see command.hpp.
#include "sim/cli/command.hpp"

#include <exception>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "sim/catalogue/catalogue.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/run.hpp"
#include "sim/cli/views.hpp"
#include "sim/replay/replay.hpp"
#include "sim/sweep/sweep.hpp"

namespace octavo::sim {
namespace {

constexpr int exit_good = 0;
constexpr int exit_unexpected = 1;
constexpr int exit_bad_input = 2;
constexpr int exit_infeasible = 3;

// Refuses flags that the others make meaningless, rather than ignore them.
void check_together(const sim_options& o) {
  const auto refuse = [](bool both, const std::string& flag, const std::string& why) {
    if (both) throw input_error(flag + ": " + why);
  };
  refuse(o.verify && o.replay.empty(), "--verify", "--replay is needed: a log to decide again");
  refuse(o.find_capacity && o.find_min_gpus, "--find-min-gpus",
         "a search of its own beside --find-capacity; leave one of them out");
  const bool searches = !o.vary.empty() || o.find_capacity || o.find_min_gpus;
  const bool shows = o.timeline || !o.explain.empty();
  refuse(searches && shows, o.timeline ? "--timeline" : "--explain",
         "shows a single run, without --vary, --find-capacity and --find-min-gpus");
  const bool many = searches || shows;
  const char* single =
      "written by a plain run only, without --vary, --find-capacity, "
      "--find-min-gpus, --timeline and --explain";
  refuse(many && !o.decision_log.empty(), "--decision-log", single);
  refuse(many && !o.chrome_trace.empty(), "--chrome-trace", single);
  refuse(shows && !o.out_json.empty(), "--out-json", "not written with --timeline and --explain");
  refuse(shows && !o.out_csv.empty(), "--out-csv", "not written with --timeline and --explain");
}

// No file is written over another, least of all over the trace.
void check_paths(const sim_options& o) {
  const std::pair<const char*, const std::string*> paths[] = {{"--trace", &o.trace},
                                                              {"--out-json", &o.out_json},
                                                              {"--out-csv", &o.out_csv},
                                                              {"--decision-log", &o.decision_log},
                                                              {"--chrome-trace", &o.chrome_trace}};
  for (const auto& [flag, path] : paths) {
    for (const auto& [other, same] : paths) {
      if (flag == other || path->empty()) continue;
      if (*path == *same) {
        throw input_error(std::string{flag} + ": '" + *path + "' is named by " + other + " too");
      }
    }
  }
}

int dispatch(const sim_options& options, std::ostream& out, std::ostream& err) {
  check_together(options);
  check_paths(options);
  if (options.list_gpus) {
    list_gpus(out);
    return exit_good;
  }
  if (options.list_models) {
    list_models(out);
    return exit_good;
  }
  if (!options.kv_table.empty()) {
    kv_table(find_model(options.kv_table), out);
    return exit_good;
  }
  if (!options.replay.empty()) return replay_command(options.replay, options.verify, out, err);
  if (options.trace.empty()) {
    throw input_error("--trace is needed: a request trace to replay. sim --help lists the flags.");
  }
  if (options.timeline) {
    show_timeline(options, out);
    return exit_good;
  }
  if (!options.explain.empty()) {
    show_explanation(options, out);
    return exit_good;
  }
  if (!options.vary.empty() || options.find_capacity || options.find_min_gpus) {
    return run_sweep(options, out, err);
  }
  return run_once(options, out, err);
}

}  // namespace

int sim_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  try {
    const parsed_options parsed = parse_sim_options(arguments);
    if (parsed.text) {
      out << *parsed.text << std::flush;
      return out ? exit_good : exit_bad_input;
    }
    const int code = dispatch(parsed.options, out, err);
    if (!out.flush()) throw input_error("the report could not be written to standard output");
    return code;
  } catch (const input_error& problem) {
    err << "sim: " << problem.what() << '\n';
    return exit_bad_input;
  } catch (const infeasible_error& problem) {
    err << "sim: infeasible: " << problem.what() << '\n';
    return exit_infeasible;
  } catch (const std::exception& problem) {
    err << "sim: stopped by an unexpected problem: " << problem.what() << '\n';
    return exit_unexpected;
  }
}

}  // namespace octavo::sim
