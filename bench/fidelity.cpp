// Prediction against reality: two recorded vLLM runs (RTX 4090 and RTX PRO 6000,
// Llama-3.1-8B, 300 requests) simulated with their own kernel profiles, and the
// relative error of each latency. Reads ../shared; skips where it is absent.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/kv_arithmetic.hpp"
#include "sim/catalogue/catalogue.hpp"
#include "sim/cost/convert.hpp"
#include "sim/report/summary.hpp"
#include "sim/world/simulation.hpp"
#include "traces/reader.hpp"

using namespace octavo;
using namespace octavo::sim;

namespace {

const std::filesystem::path shared = OCTAVO_SHARED_DIR;

// What a recorded run was given.
struct recorded_run {
  std::string name;
  std::string gpu;
  std::int32_t max_num_seqs;
  std::int32_t max_model_len;
  std::int32_t blocks;  // 0: derived from memory
};

struct latencies {
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> e2e;
};

// Arrival is when vLLM queued the request; contents come from the block ids that
// were derived from the same requests, in the same order.
std::shared_ptr<traces::trace> trace_of(const recorded_run& run, latencies& real) {
  auto trace = std::make_shared<traces::trace>(
      traces::read_trace(shared / "traces/sharegpt_llama31_8b_300_blocks16.jsonl"));
  std::ifstream in(shared / "profiles/llmservingsim/bench" / run.name / "requests.jsonl");
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(nlohmann::json::parse(line));
  double first = rows.front()["queued_ts"];
  for (const auto& row : rows) first = std::min(first, row["queued_ts"].get<double>());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const double queued = row["queued_ts"];
    const double start = row["first_token_ts"];
    const double last = row["last_token_ts"];
    const int output = row["output_toks"];
    traces::request& r = trace->requests[i];
    r.arrival = micros{static_cast<std::int64_t>((queued - first) * 1e6)};
    r.prompt_tokens = token_count{row["input_toks"].get<int>()};
    r.output_tokens = token_count{output};
    real.ttft.push_back(start - queued);
    real.e2e.push_back(last - queued);
    if (output > 1) real.tpot.push_back((last - start) / (output - 1));
  }
  return trace;
}

engine_config engine_of(const recorded_run& run, const gpu_spec& gpu,
                        const model::model_config& config) {
  engine_config e;
  e.max_num_seqs = run.max_num_seqs;
  e.max_num_batched_tokens = token_count{2048};
  e.max_model_len = token_count{run.max_model_len};
  e.run_ahead = 1;  // vLLM's asynchronous scheduling was on
  std::int64_t blocks = run.blocks;
  if (blocks == 0) {
    const auto layout = model::make_kv_layout(config, model::kv_dtype::fp16, 1, 16);
    blocks = model::kv_blocks(gpu.memory_bytes, 0.9,
                              model::weight_bytes(config, model::weight_format::fp16, 1).total(),
                              model::activation_peak_bytes(config, 1, 2048, run.max_num_seqs),
                              layout.block_bytes)
                 .blocks;
  }
  e.num_blocks = block_count{static_cast<std::int32_t>(blocks)};
  return e;
}

latencies simulate_run(const simulation_options& options) {
  latencies l;
  const simulation_outcome outcome = simulate(options);
  const auto s = [](micros d) { return static_cast<double>(d.raw()) * 1e-6; };
  for (const request_outcome& r : outcome.requests) {
    l.ttft.push_back(s(r.first_token - r.arrival));
    l.e2e.push_back(s(r.last_token - r.arrival));
    if (r.output_tokens.raw() > 1) {
      l.tpot.push_back(s(r.last_token - r.first_token) / (r.output_tokens.raw() - 1));
    }
  }
  return l;
}

void compare(const char* name, std::vector<double> real, std::vector<double> simulated) {
  std::ranges::sort(real);
  std::ranges::sort(simulated);
  const auto mean = [](const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
  };
  const auto line = [&](const char* which, double a, double b) {
    std::printf("  %-5s %-5s %12.3f ms %12.3f ms %+8.1f %%\n", name, which, a * 1e3, b * 1e3,
                (b / a - 1) * 100);
  };
  line("mean", mean(real), mean(simulated));
  for (const double p : {50.0, 90.0, 99.0}) {
    line(("p" + std::to_string(static_cast<int>(p))).c_str(), percentile(real, p),
         percentile(simulated, p));
  }
}

void run_and_compare(const recorded_run& run) {
  latencies real;
  const model::model_config config = find_model("llama-3.1-8b");
  const gpu_spec gpu = find_gpu(run.gpu);
  const std::string prefix =
      (shared / "profiles/llmservingsim/profile" / (run.name + "_bf16_tp1")).string();
  simulation_options options;
  options.trace = trace_of(run, real);
  options.engine = engine_of(run, gpu, config);
  options.cost = std::make_shared<profile_cost>(convert_llmservingsim(prefix, config, 1, run.gpu));
  options.work.limit = assumed_limit::exact;
  const latencies simulated = simulate_run(options);
  std::printf("%s: %d KV blocks, priced by %s\n", run.name.c_str(), options.engine.num_blocks.raw(),
              options.cost->source().c_str());
  std::printf("  %-11s %15s %15s %10s\n", "", "vLLM", "simulated", "error");
  compare("TTFT", real.ttft, simulated.ttft);
  compare("TPOT", real.tpot, simulated.tpot);
  compare("E2E", real.e2e, simulated.e2e);
}

}  // namespace

int main() {
  if (!std::filesystem::exists(shared / "profiles/llmservingsim/bench")) {
    std::printf("skipped: no recorded runs at %s\n", shared.c_str());
    return 0;
  }
  run_and_compare({"RTX4090_Llama-3.1-8B", "rtx-4090", 256, 32768, 2588});
  run_and_compare({"RTXPRO6000_Llama-3.1-8B", "rtx-pro-6000", 128, 131072, 0});
  return 0;
}
