// For tests of the report: a run written down by hand, request by request.
#pragma once

#include <memory>

#include "sim/cli/prepare.hpp"
#include "sim/world/outcome.hpp"
#include "tests/support/sim_world.hpp"

namespace octavo::test {

/// A request that arrived, got its first and its last token, in seconds.
[[nodiscard]] inline sim::request_outcome completed_request(double arrival_s, double first_s,
                                                            double last_s, std::int32_t tokens) {
  sim::request_outcome r;
  r.arrival = seconds_us(arrival_s);
  r.admitted = r.arrival;
  r.first_token = seconds_us(first_s);
  r.last_token = seconds_us(last_s);
  r.prompt_tokens = token_count{100};
  r.output_tokens = token_count{tokens};
  r.cached_tokens = token_count{0};
  r.finish = reason::finished_eos;
  return r;
}

/// One that ended without an answer.
[[nodiscard]] inline sim::request_outcome failed_request(double arrival_s, reason why) {
  sim::request_outcome r;
  r.arrival = seconds_us(arrival_s);
  r.prompt_tokens = token_count{100};
  r.finish = why;
  return r;
}

/// A configuration to report on, with as many requests in its trace.
[[nodiscard]] inline sim::prepared_run run_with(std::size_t requests) {
  sim::prepared_run run;
  run.simulation = world_of(std::vector<traces::request>(requests, request_at(0, 100, 1)));
  run.simulation.engine.max_num_seqs = 4;
  return run;
}

}  // namespace octavo::test
