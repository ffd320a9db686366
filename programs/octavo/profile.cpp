// `octavo profile`: see profile.hpp.
#include "programs/octavo/profile.hpp"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>

#include "actors/wall_clock.hpp"
#include "core/error.hpp"
#include "cpu/cpu_executor.hpp"
#include "model/generation/kv_groups.hpp"
#include "programs/octavo/command_line.hpp"
#include "programs/octavo/local_engine.hpp"
#include "programs/octavo/measure_profile.hpp"
#include "sim/cost/convert.hpp"

namespace octavo {
namespace {

struct profile_options {
  std::string model;
  std::string out;
  std::int64_t threads = 0;
  measure_options measure;
};

std::optional<std::string> parse(const std::vector<std::string>& arguments, profile_options& o) {
  CLI::App app{
      "Measures a model on this machine's CPU and writes what sim --profile prices with.\n"
      "  octavo profile measure model.gguf --out cpu.json\n"
      "  sim --trace prod.jsonl --model model.gguf --profile cpu.json\n"
      "octavo profile convert --help tells how to convert public measurements.",
      "octavo profile measure"};
  app.add_option("model", o.model, "a .gguf file or Hugging Face directory")->required();
  app.add_option("--out", o.out, "profile to write")->required();
  app.add_option("--threads", o.threads, "threads of a step; 0: one for each core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--context-max", o.measure.context_max, "longest context to measure, tokens")
      ->check(CLI::Range(128, 1'000'000))
      ->capture_default_str();
  app.add_option("--sequences-max", o.measure.sequences_max, "most sequences that decode at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--tokens-max", o.measure.tokens_max, "most tokens of a step")
      ->check(CLI::Range(16, 65'536))
      ->capture_default_str();
  app.add_option("--repeats", o.measure.repeats, "steps of each shape; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  return parse_flags(app, arguments);
}

// Seconds between two tokens of one stream, as a client of the actors sees them.
double gap_seconds(const local_model& model, std::int64_t threads, std::int32_t tokens) {
  sim::engine_flags flags;
  flags.max_num_seqs = 1;
  flags.max_model_len = "512";
  const machine_flags machine{.threads = threads};
  const engine_config config = local_engine_config(model, flags, machine);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<double> times;
  bool ended = false;
  sampling_parameters greedy;
  greedy.temperature = 0;
  greedy.ignore_eos = true;
  local_engine engine{model, config, flags, machine, [&](const actors::event_batch& batch) {
                        const std::lock_guard hold{mutex};
                        times.insert(times.end(), batch.tokens.size(), actors::wall_seconds());
                        ended = ended || !batch.finishes.empty();
                        changed.notify_one();
                      }};
  engine.submit({local_request(model, config, 1, {1, 2, 3, 4}, tokens, greedy)});
  std::unique_lock hold{mutex};
  changed.wait(hold, [&] { return ended; });
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  std::ranges::sort(gaps);
  return gaps[gaps.size() / 2];
}

sim::profile measure(const local_model& model, const profile_options& o, std::ostream& err) {
  const model::model_config& config = model.weights->config;
  measure_options how = o.measure;
  how.context_max =
      std::min<std::int32_t>(how.context_max, static_cast<std::int32_t>(config.max_positions));
  how.tokens_max = std::min(how.tokens_max, how.context_max);
  const auto groups = model::engine_kv_groups(config, cpu::kv_cache::block_size);
  cpu::cpu_executor_options options;
  options.threads = o.threads > 0 ? static_cast<std::size_t>(o.threads)
                                  : std::max(1U, std::thread::hardware_concurrency());
  options.num_blocks = blocks_to_measure(groups, how);
  cpu::cpu_executor device{model.weights, model.words, options};
  sim::profile p =
      measure_profile(device, groups, config.layers, how, actors::wall_seconds, [&](double done) {
        err << "\rmeasuring: " << static_cast<int>(100 * done) << " %" << (done < 1 ? "" : "\n")
            << std::flush;
      });
  p.model = config.name.empty() ? std::filesystem::path{o.model}.stem().string() : config.name;
  p.gpu = "cpu";
  p.hidden_size = config.hidden_size;
  p.provenance =
      "measured by octavo profile on this CPU with " + std::to_string(options.threads) + " threads";
  return p;
}

int measure_command(const std::vector<std::string>& arguments, std::ostream& out,
                    std::ostream& err) {
  profile_options o;
  if (const auto text = parse(arguments, o)) {
    out << *text;
    return 0;
  }
  const local_model model = load_local_model(o.model, {}, {.device = "cpu", .threads = o.threads});
  sim::profile p = measure(model, o, err);
  // What the actors' hops and the text add to a step.
  const sim::profile_cost device{p};
  constexpr std::int32_t tokens = 64;
  const sim::step_shape decode{.decode_sequences = 1,
                               .decode_context = tokens / 2,
                               .decode_context_max = tokens / 2,
                               .sampled_sequences = 1};
  p.host_step_us =
      std::max(0.0, gap_seconds(model, o.threads, tokens) * 1e6 - device.device_time_us(decode));
  std::ofstream file{o.out};
  file << sim::to_json(p);
  if (!file.flush()) throw input_error("--out: " + o.out + " cannot be written");
  char line[200];
  std::snprintf(line, sizeof line,
                "%s: a token of one stream takes %.2f ms, of which the actors %.3f ms; a step of "
                "%d tokens %.0f ms\n",
                o.out.c_str(), (device.device_time_us(decode) + p.host_step_us) / 1e3,
                p.host_step_us / 1e3, o.measure.tokens_max,
                p.dense.front().us.at({static_cast<double>(o.measure.tokens_max)}) / 1e3);
  out << line;
  return 0;
}

}  // namespace

int profile_command(const std::vector<std::string>& arguments, std::ostream& out,
                    std::ostream& err) {
  if (arguments.empty() || arguments.front() != "measure") {
    std::vector<std::string> all{"profile"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& argument : all) argv.push_back(argument.data());
    return sim::profile_command(static_cast<int>(argv.size()), argv.data(), out, err);
  }
  return run_command(err, [&] {
    return measure_command({arguments.begin() + 1, arguments.end()}, out, err);
  });
}

}  // namespace octavo
