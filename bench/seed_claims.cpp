// What the techniques bring, in simulation: continuous batching with paged KV
// against static batching with contiguous KV, the share of KV slots that hold a
// token, and the cut of TTFT by prefix caching. Prints ratios.
#include <cstdio>
#include <memory>

#include "sim/catalogue/catalogue.hpp"
#include "sim/cli/prepare.hpp"
#include "sim/cli/run.hpp"
#include "traces/synth.hpp"

using namespace octavo;
using namespace octavo::sim;

namespace {

run_summary run(const sim_options& options, const std::shared_ptr<traces::trace>& trace) {
  prepared_run prepared = prepare_run(options, trace);
  return execute_run(prepared).summary;
}

std::shared_ptr<traces::trace> synthesized(const traces::synth_options& options) {
  return std::make_shared<traces::trace>(traces::synthesize(options));
}

// More than one GPU can take, so that throughput is what is compared.
void compare_batching() {
  traces::synth_options chat;
  chat.requests = 1000;
  chat.rate_rps = 8;
  chat.prompt = {traces::lognormal_median(870, 0.9), 0.9, token_count{1}, token_count{3200}};
  chat.output = {traces::lognormal_median(228, 0.7), 0.7, token_count{1}, token_count{890}};
  const auto trace = synthesized(chat);
  sim_options o;
  o.model = "llama-2-7b";
  o.gpu = "a100-80g";
  o.max_num_seqs = 128;
  o.max_model_len = "4096";
  o.enable_prefix_caching = false;
  const run_summary modern = run(o, trace);
  o.policy = "static";
  o.kv_layout = "contiguous";
  const run_summary former = run(o, trace);
  std::printf("llama-2-7b on a100-80g, 1000 chat requests at 8 req/s (overload)\n");
  std::printf("  %-24s %12s %14s\n", "", "tokens/s", "slots in use");
  std::printf("  %-24s %12.0f %12.1f %%\n", "static, contiguous", former.output_tokens_per_s,
              former.tokens_per_slot * 100);
  std::printf("  %-24s %12.0f %12.1f %%\n", "continuous, paged", modern.output_tokens_per_s,
              modern.tokens_per_slot * 100);
  std::printf("  throughput ratio %.2f\n\n",
              modern.output_tokens_per_s / former.output_tokens_per_s);
}

void compare_prefix_caching() {
  traces::synth_options shared;
  shared.requests = 2000;
  shared.rate_rps = 3;
  shared.prefixes = 1;
  shared.prefix_tokens = token_count{3000};
  shared.prompt.median_tokens = 80;
  shared.output.median_tokens = 100;
  const auto trace = synthesized(shared);
  sim_options o;
  o.model = "llama-3.1-8b";
  o.gpu = "h100";
  const run_summary with = run(o, trace);
  o.enable_prefix_caching = false;
  const run_summary without = run(o, trace);
  std::printf("llama-3.1-8b on h100, one system prompt of 3,000 tokens, 3 req/s\n");
  std::printf("  mean TTFT %.1f ms without, %.1f ms with prefix caching: cut by %.0f %%\n",
              without.ttft_s.mean * 1e3, with.ttft_s.mean * 1e3,
              (1 - with.ttft_s.mean / without.ttft_s.mean) * 100);
}

}  // namespace

int main() {
  compare_batching();
  compare_prefix_caching();
  return 0;
}
