// How fast the engine itself is, in simulation: requests per wall second, time
// per step, memory, at 10,000 and at 1,000,000 requests and with a long queue.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "sim/cli/prepare.hpp"
#include "sim/cli/run.hpp"
#include "traces/synth.hpp"

using namespace octavo;
using namespace octavo::sim;

namespace {

sim_options anchor_options() {
  sim_options o;
  o.model = "llama-2-7b";
  o.gpu = "a100-80g";
  o.num_gpu_blocks_override = 7424;
  o.max_num_seqs = 128;
  o.max_num_batched_tokens = 512;
  o.max_model_len = "4096";
  o.enable_prefix_caching = false;
  return o;
}

std::shared_ptr<traces::trace> chat_trace(std::uint32_t requests, double rate_rps) {
  traces::synth_options chat;
  chat.requests = requests;
  chat.rate_rps = rate_rps;
  chat.prompt = {traces::lognormal_median(870, 0.9), 0.9, token_count{1}, token_count{3200}};
  chat.output = {traces::lognormal_median(228, 0.7), 0.7, token_count{1}, token_count{890}};
  return std::make_shared<traces::trace>(traces::synthesize(chat));
}

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct timing {
  double us_per_request = 0;
  double us_per_step = 0;
};

timing measure(const char* name, std::uint32_t requests, double rate_rps) {
  prepared_run run = prepare_run(anchor_options(), chat_trace(requests, rate_rps));
  const finished_run finished = execute_run(run);
  const timing t{finished.wall_s * 1e6 / requests,
                 finished.wall_s * 1e6 / static_cast<double>(finished.summary.steps)};
  std::printf("  %-28s %9u %10.0f %12.2f %12.2f %10.0f\n", name, requests, 1e6 / t.us_per_request,
              t.us_per_request, t.us_per_step, peak_memory_mb());
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  const auto large = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1'000'000);
  std::printf("  %-28s %9s %10s %12s %12s %10s\n", "llama-2-7b on a100-80g", "requests", "req/s",
              "us/request", "us/step", "peak MB");
  const timing small = measure("chat, 4 req/s", 10'000, 4);
  const timing short_queue = measure("at once, short queue", 1'100, 1e6);
  const timing long_queue = measure("at once, long queue", 110'000, 1e6);
  const timing big = measure("chat, 4 req/s", large, 4);
  std::printf("  time per request, large over small trace: %.2f\n",
              big.us_per_request / small.us_per_request);
  std::printf("  time per step, long over short queue: %.2f\n",
              long_queue.us_per_step / short_queue.us_per_step);
  return 0;
}
