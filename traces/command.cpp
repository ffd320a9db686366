// Command line of `octavo trace`; see command.hpp.
#include "traces/command.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "traces/reader.hpp"
#include "traces/summary.hpp"
#include "traces/synth.hpp"
#include "traces/writer.hpp"

namespace octavo::traces {
namespace {

constexpr int exit_input = 2;

struct convert_arguments {
  std::string in;
  std::string out;
};

struct inspect_arguments {
  std::string file;
  bool json = false;
};

/// Options as typed; CLI11 knows plain numbers, so units come in `apply_units`.
struct synth_arguments {
  synth_options options;
  double prompt_mean = 0;
  double output_mean = 0;
  std::int32_t prompt_min = 1;
  std::int32_t prompt_max = 100'000;
  std::int32_t output_min = 1;
  std::int32_t output_max = 100'000;
  std::int32_t prefix_tokens = 512;
  std::int32_t prefix_block = 16;
  std::int32_t context_max = 0;
  std::string out = "-";
};

const std::map<std::string, arrival_kind> arrival_names{{"poisson", arrival_kind::poisson},
                                                        {"gamma", arrival_kind::gamma},
                                                        {"diurnal", arrival_kind::diurnal},
                                                        {"uniform", arrival_kind::uniform},
                                                        {"at-once", arrival_kind::at_once}};

void add_convert(CLI::App& app, convert_arguments& a) {
  auto* command = app.add_subcommand("convert", "Read any known format, write octavo.trace/1");
  command->add_option("IN", a.in, "trace to read")->required();
  command->add_option("OUT", a.out, "file to write, gzipped if it ends in .gz; - for stdout")
      ->required();
}

void add_inspect(CLI::App& app, inspect_arguments& a) {
  auto* command = app.add_subcommand("inspect", "Show a trace's size, rate, lengths and prefixes");
  command->add_option("FILE", a.file, "trace to read")->required();
  command->add_flag("--json", a.json, "print one JSON object");
}

void add_arrival_options(CLI::App& command, synth_arguments& a) {
  synth_options& o = a.options;
  command.add_option("--arrivals", o.arrivals, "poisson, gamma, diurnal, uniform or at-once")
      ->transform(CLI::CheckedTransformer(arrival_names).description(""))
      ->default_str("poisson")
      ->group("Arrivals");
  command.add_option("--rate", o.rate_rps, "mean requests per second")
      ->capture_default_str()
      ->group("Arrivals");
  command.add_option("--cv", o.cv, "gamma: gaps' standard deviation over mean")
      ->capture_default_str()
      ->group("Arrivals");
  command.add_option("--period-s", o.period_s, "diurnal: seconds of one cycle")
      ->capture_default_str()
      ->group("Arrivals");
  command.add_option("--peak-to-trough", o.peak_to_trough, "diurnal: highest over lowest rate")
      ->capture_default_str()
      ->group("Arrivals");
}

void add_length_options(CLI::App& command, const std::string& name, length_options& o, double& mean,
                        std::int32_t& min, std::int32_t& max) {
  auto* median = command.add_option("--" + name + "-median", o.median_tokens,
                                    "tokens, median before --" + name + "-min and -max");
  median->capture_default_str()->group("Lengths (lognormal)");
  command.add_option("--" + name + "-mean", mean, "tokens, mean: instead of the median")
      ->excludes(median)
      ->group("Lengths (lognormal)");
  command.add_option("--" + name + "-sigma", o.sigma, "spread of the logarithm; 0: fixed length")
      ->capture_default_str()
      ->group("Lengths (lognormal)");
  command.add_option("--" + name + "-min", min, "tokens, at least")
      ->capture_default_str()
      ->group("Lengths (lognormal)");
  command.add_option("--" + name + "-max", max, "tokens, at most")
      ->capture_default_str()
      ->group("Lengths (lognormal)");
}

void add_sharing_options(CLI::App& command, synth_arguments& a) {
  synth_options& o = a.options;
  command.add_option("--prefixes", o.prefixes, "distinct system prompts")
      ->capture_default_str()
      ->group("Sharing and sessions");
  command.add_option("--prefix-tokens", a.prefix_tokens, "tokens of a system prompt")
      ->capture_default_str()
      ->group("Sharing and sessions");
  command.add_option("--zipf", o.zipf, "system prompts' popularity falls as 1/rank^Z; 0: equal")
      ->capture_default_str()
      ->group("Sharing and sessions");
  command.add_option("--prefix-block", a.prefix_block, "tokens a prefix id stands for")
      ->capture_default_str()
      ->group("Sharing and sessions");
  command.add_option("--turns-min", o.turns_min, "turns of a session, at least")
      ->capture_default_str()
      ->group("Sharing and sessions");
  command.add_option("--turns-max", o.turns_max, "turns of a session, at most")
      ->capture_default_str()
      ->group("Sharing and sessions");
  command.add_option("--think-s", o.think_s, "mean seconds from an answer to the next turn")
      ->capture_default_str()
      ->group("Sharing and sessions");
  command
      .add_option("--context-max", a.context_max,
                  "tokens a session's prompt and output may reach; 0: no limit")
      ->capture_default_str()
      ->group("Sharing and sessions");
}

void add_synth(CLI::App& app, synth_arguments& a) {
  auto* command = app.add_subcommand("synth", "Make a synthetic trace");
  command->add_option("--requests", a.options.requests, "requests")->capture_default_str();
  command->add_option("--seed", a.options.seed, "same seed and options: same bytes")
      ->capture_default_str();
  command->add_option("--out", a.out, "file to write, gzipped if it ends in .gz; - for stdout")
      ->capture_default_str();
  add_arrival_options(*command, a);
  add_length_options(*command, "prompt", a.options.prompt, a.prompt_mean, a.prompt_min,
                     a.prompt_max);
  add_length_options(*command, "output", a.options.output, a.output_mean, a.output_min,
                     a.output_max);
  add_sharing_options(*command, a);
}

void apply_units(synth_arguments& a) {
  synth_options& o = a.options;
  o.prompt.min = token_count{a.prompt_min};
  o.prompt.max = token_count{a.prompt_max};
  o.output.min = token_count{a.output_min};
  o.output.max = token_count{a.output_max};
  o.prefix_tokens = token_count{a.prefix_tokens};
  o.prefix_block = token_count{a.prefix_block};
  o.context_max = token_count{a.context_max};
  if (a.prompt_mean > 0) o.prompt.median_tokens = lognormal_median(a.prompt_mean, o.prompt.sigma);
  if (a.output_mean > 0) o.output.median_tokens = lognormal_median(a.output_mean, o.output.sigma);
}

void write(const trace& t, const std::string& target, std::ostream& out) {
  if (target == "-") {
    write_trace(t, out);
  } else {
    write_trace(t, std::filesystem::path(target));
  }
}

void convert(const convert_arguments& a, std::ostream& out, std::ostream& err) {
  trace t = read_trace(a.in);
  for (const std::string& note : t.notes) err << "note: " << note << '\n';
  if (t.format != "octavo.trace/1")
    t.notes.insert(t.notes.begin(), "Converted from " + t.format + '.');
  write(t, a.out, out);
}

void inspect(const inspect_arguments& a, std::ostream& out) {
  const trace_summary s = summarize(read_trace(a.file));
  out << (a.json ? to_json(s) + '\n' : to_table(s));
}

}  // namespace

int trace_command(int argc, char** argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Convert, inspect and make request traces", argc > 0 ? argv[0] : "octavo trace");
  app.require_subcommand(1);
  convert_arguments to_convert;
  inspect_arguments to_inspect;
  synth_arguments to_make;
  add_convert(app, to_convert);
  add_inspect(app, to_inspect);
  add_synth(app, to_make);
  try {
    app.parse(argc, argv);
    if (app.got_subcommand("convert")) convert(to_convert, out, err);
    if (app.got_subcommand("inspect")) inspect(to_inspect, out);
    if (app.got_subcommand("synth")) {
      apply_units(to_make);
      write(synthesize(to_make.options), to_make.out, out);
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? 0 : exit_input;
  } catch (const input_error& error) {
    err << "error: " << error.what() << '\n';
    return exit_input;
  }
  return 0;
}

}  // namespace octavo::traces
