// For tests: worlds small enough to be worked out by hand, where every step
// takes 10 ms.
#pragma once

#include <memory>
#include <vector>

#include "sim/cost/constant.hpp"
#include "sim/world/simulation.hpp"

namespace octavo::sim::teach {

struct small_request {
  int arrival_ms = 0;
  int prompt_tokens = 1;
  int output_tokens = 1;
};

/// Blocks of 4 tokens, two sequences at once, at most 16 tokens a request.
inline simulation_options small_world(const std::vector<small_request>& requests) {
  auto trace = std::make_shared<traces::trace>();
  for (const small_request& r : requests) {
    traces::request& added = trace->requests.emplace_back();
    added.arrival = micros{r.arrival_ms * 1000};
    added.prompt_tokens = token_count{r.prompt_tokens};
    added.output_tokens = token_count{r.output_tokens};
    added.max_tokens = token_count{16 - r.prompt_tokens};
  }
  simulation_options options;
  options.trace = std::move(trace);
  options.engine.block_size = token_count{4};
  options.engine.num_blocks = block_count{64};
  options.engine.max_model_len = token_count{16};
  options.engine.max_num_seqs = 2;
  options.cost = std::make_shared<constant_cost>(10'000);
  return options;
}

/// Two that come at once, the first with the longer prompt and answer, and one
/// at 15 ms.
///
/// continuous: steps [0, 10) prefill 0, 1; [10, 20) decode 0, 1, which ends 1;
///   [20, 30) prefill 2, decode 0; [30, 40) decode 0, 2, which ends both.
/// static: [0, 10) prefill 0 and 1, this padded by 4; [10, 20) decode, which
///   ends 1; [20, 40) decode 0, padding for 1; [40, 50) prefill 2; [50, 60) decode.
inline simulation_options three_requests() {
  return small_world({{0, 8, 4}, {0, 4, 2}, {15, 4, 2}});
}

}  // namespace octavo::sim::teach
