// `octavo bench`: see bench.hpp.
#include "programs/octavo/bench.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "actors/wall_clock.hpp"
#include "core/error.hpp"
#include "programs/octavo/bench_workload.hpp"
#include "programs/octavo/command_line.hpp"
#include "programs/octavo/loading.hpp"
#include "programs/octavo/local_engine.hpp"

namespace octavo {
namespace {

struct bench_options {
  std::string model;
  std::vector<std::string> workloads;
  std::int32_t streams = 8;
  std::int32_t repeat = 3;
  std::string out_json;
  bool quiet = false;
  sim::engine_flags engine;
  machine_flags machine;
};

std::optional<std::string> parse(const std::vector<std::string>& arguments, bench_options& o) {
  CLI::App app{
      "Measures a model on this machine. All requests of a workload arrive at once.\n"
      "  octavo bench model.gguf --workload single --workload mixed",
      "octavo bench"};
  app.add_option("model", o.model, "a .gguf file or Hugging Face directory")->required();
  app.add_option("--workload", o.workloads,
                 "single, prefill, batch, mixed, or a file of JSON lines with prompt (tokens) and "
                 "max_tokens; may be repeated (all four)");
  app.add_option("--streams", o.streams, "requests of the batch workload")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--repeat", o.repeat, "runs of each workload; the median is reported")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--out-json", o.out_json, "write the figures as JSON");
  app.add_flag("--quiet,-q", o.quiet, "no progress while the model is loaded");
  add_machine_flags(app, o.machine);
  o.engine.max_num_seqs = 64;
  sim::add_engine_flags(app, o.engine);
  if (auto help = parse_flags(app, arguments)) return help;
  if (o.workloads.empty()) o.workloads = bench_workload_names();
  const auto& known = bench_workload_names();
  for (const std::string& name : o.workloads) {
    if (std::ranges::find(known, name) != known.end() || std::filesystem::exists(name)) continue;
    throw input_error("--workload: " + name +
                      " is neither single, prefill, batch or mixed, nor a file");
  }
  return std::nullopt;
}

// When the tokens of one request came.
struct request_times {
  double first_s = 0;
  double last_s = 0;
  std::int64_t tokens = 0;
  std::int64_t cached_tokens = 0;
};

// What the engine tells while a workload runs.
class recorder {
 public:
  explicit recorder(std::size_t requests) : times_(requests), left_(requests) {}

  void hear(const actors::event_batch& batch) {
    const double now = actors::wall_seconds();
    const std::lock_guard hold{mutex_};
    for (const token_event& t : batch.tokens) {
      request_times& r = times_[t.request.raw() - 1];
      if (r.tokens++ == 0) r.first_s = now;
      r.last_s = now;
    }
    for (const finish_event& f : batch.finishes) {
      times_[f.request.raw() - 1].cached_tokens = std::max(0, f.cached_tokens.raw());
      const bool good = f.why >= reason::finished_eos && f.why <= reason::finished_kv_exhausted;
      if (!good && problem_.empty()) problem_ = sentence(f.why, f.a, f.b);
      --left_;
    }
    if (left_ == 0) ended_.notify_one();
  }

  // Waits for every request's end. Throws infeasible_error where one failed.
  std::vector<request_times> wait() {
    std::unique_lock hold{mutex_};
    ended_.wait(hold, [&] { return left_ == 0; });
    if (!problem_.empty()) throw infeasible_error("a request ended early: " + problem_);
    return times_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<request_times> times_;
  std::size_t left_;
  std::string problem_;
};

// Of all threads of this process, so far.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct figures {
  /// What it took until the engine was there.
  double load_s = 0;
  double total_s = 0;
  double processor_s = 0;
  double ttft_mean_s = 0, ttft_max_s = 0;
  double tpot_mean_s = 0;
  double e2e_mean_s = 0;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  /// Prompt tokens a second until the last first token.
  [[nodiscard]] double prefill_rate() const {
    return static_cast<double>(prompt_tokens) / ttft_max_s;
  }
  [[nodiscard]] double output_rate() const { return static_cast<double>(output_tokens) / total_s; }
};

figures figures_of(const bench_workload& work, const std::vector<request_times>& times,
                   double start) {
  figures f;
  double gaps = 0;
  const auto count = static_cast<double>(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const request_times& t = times[i];
    f.total_s = std::max(f.total_s, t.last_s - start);
    f.ttft_mean_s += (t.first_s - start) / count;
    f.ttft_max_s = std::max(f.ttft_max_s, t.first_s - start);
    f.e2e_mean_s += (t.last_s - start) / count;
    if (t.tokens > 1) {
      f.tpot_mean_s += (t.last_s - t.first_s) / static_cast<double>(t.tokens - 1);
      ++gaps;
    }
    f.prompt_tokens += std::ssize(work.requests[i].prompt);
    f.cached_tokens += t.cached_tokens;
    f.output_tokens += t.tokens;
  }
  if (gaps > 0) f.tpot_mean_s /= gaps;
  return f;
}

figures run_once(const local_model& model, const engine_config& config, const bench_options& o,
                 const bench_workload& work) {
  sampling_parameters greedy;
  greedy.temperature = 0;
  greedy.ignore_eos = true;
  std::vector<request_spec> requests;
  for (const bench_request& r : work.requests) {
    requests.push_back(
        local_request(model, config, requests.size() + 1, r.prompt, r.max_tokens, greedy));
  }
  recorder heard{requests.size()};
  local_engine engine{model, config, o.engine, o.machine,
                      [&](const actors::event_batch& batch) { heard.hear(batch); }};
  const double spent = processor_seconds();
  const double start = actors::wall_seconds();
  engine.submit(std::move(requests));
  figures f = figures_of(work, heard.wait(), start);
  f.processor_s = processor_seconds() - spent;
  f.load_s = engine.load_seconds();
  return f;
}

// Of several runs the one with the median total time.
figures run_workload(const local_model& model, const engine_config& config, const bench_options& o,
                     const bench_workload& work) {
  std::vector<figures> runs;
  for (std::int32_t i = 0; i < o.repeat; ++i) runs.push_back(run_once(model, config, o, work));
  std::ranges::sort(runs, {}, &figures::total_s);
  return runs[runs.size() / 2];
}

nlohmann::ordered_json to_json(const bench_workload& work, const figures& f) {
  return {{"workload", work.name},
          {"requests", work.requests.size()},
          {"prompt_tokens", f.prompt_tokens},
          {"cached_tokens", f.cached_tokens},
          {"output_tokens", f.output_tokens},
          {"total_s", f.total_s},
          {"processor_s", f.processor_s},
          {"ttft_s_mean", f.ttft_mean_s},
          {"ttft_s_max", f.ttft_max_s},
          {"tpot_s_mean", f.tpot_mean_s},
          {"e2e_s_mean", f.e2e_mean_s},
          {"prefill_tokens_per_s", f.prefill_rate()},
          {"output_tokens_per_s", f.output_rate()}};
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

bench_workload workload_of(const bench_options& o, const local_model& model,
                           const std::string& name) {
  const auto& known = bench_workload_names();
  if (std::ranges::find(known, name) == known.end()) return read_bench_workload(name);
  return make_bench_workload(name, o.streams,
                             static_cast<std::int32_t>(model.source->config().vocab_size));
}

void print_row(std::ostream& out, const bench_workload& work, const figures& f) {
  char line[200];
  std::snprintf(line, sizeof line, "%-10.24s %5zu %8lld %8lld %8.2f %10.1f %10.1f %9.1f %8.2f\n",
                work.name.c_str(), work.requests.size(), static_cast<long long>(f.prompt_tokens),
                static_cast<long long>(f.output_tokens), f.total_s, f.prefill_rate(),
                f.output_rate(), f.ttft_mean_s * 1e3, f.tpot_mean_s * 1e3);
  out << line << std::flush;
}

void print_head(std::ostream& out, double load_s) {
  char head[200];
  std::snprintf(head, sizeof head, "loaded in %.2f s\n\n%-10s %5s %8s %8s %8s %10s %10s %9s %8s\n",
                load_s, "workload", "reqs", "in", "out", "total s", "in tok/s", "out tok/s",
                "ttft ms", "tpot ms");
  out << head << std::flush;
}

int bench(bench_options& o, std::ostream& out, std::ostream& err) {
  if (!o.quiet) o.machine.hears_loading = show_loading(err, false);
  const local_model model = load_local_model(o.model, o.engine, o.machine);
  const engine_config config = local_engine_config(model, o.engine, o.machine);
  nlohmann::ordered_json report{
      {"model", o.model},
      {"load_s", model.load_seconds},
      {"weight_bytes", model.weights != nullptr ? model.weights->bytes() : 0},
      {"engine", nlohmann::ordered_json::parse(to_json(config))},
      {"workloads", nlohmann::ordered_json::array()}};
  // On GPUs weights are loaded with the first engine.
  const bool loaded = model.device == device_kind::cpu;
  if (loaded) print_head(out, model.load_seconds);
  for (const std::string& name : o.workloads) {
    const bench_workload work = workload_of(o, model, name);
    const figures f = run_workload(model, config, o, work);
    if (!loaded && report["workloads"].empty()) {
      report["load_s"] = model.load_seconds + f.load_s;
      print_head(out, report["load_s"]);
    }
    print_row(out, work, f);
    report["workloads"].push_back(to_json(work, f));
  }
  report["peak_memory_bytes"] = peak_memory_bytes();
  if (!o.out_json.empty()) {
    std::ofstream file{o.out_json};
    file << report.dump(2) << '\n';
    if (!file.flush()) throw input_error("--out-json: " + o.out_json + " cannot be written");
  }
  return 0;
}

}  // namespace

int bench_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  return run_command(err, [&] {
    bench_options options;
    if (const auto text = parse(arguments, options)) {
      out << *text;
      return 0;
    }
    return bench(options, out, err);
  });
}

}  // namespace octavo
