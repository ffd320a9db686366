// Small simulated worlds for tests: requests written down by hand, steps that
// all take the same time, so that every time can be computed by hand.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/world/simulation.hpp"

namespace octavo::test {

/// Every step takes `device_us`, and the host `host_us` to plan it.
class flat_cost final : public sim::cost_model {
 public:
  explicit flat_cost(double device_us, double host_us = 0)
      : device_us_(device_us), host_us_(host_us) {}
  [[nodiscard]] double device_time_us(const sim::step_shape&) const override { return device_us_; }
  [[nodiscard]] double host_time_us(const sim::step_shape&) const override { return host_us_; }
  [[nodiscard]] std::string source() const override { return "flat"; }

 private:
  double device_us_;
  double host_us_;
};

[[nodiscard]] inline micros seconds_us(double seconds) {
  return micros{std::llround(seconds * 1e6)};
}

[[nodiscard]] inline traces::request request_at(double arrival_s, std::int32_t prompt,
                                                std::int32_t output) {
  traces::request r;
  r.arrival = seconds_us(arrival_s);
  r.prompt_tokens = token_count{prompt};
  r.output_tokens = token_count{output};
  return r;
}

/// Arrives `delay_s` after request number `before` has finished.
[[nodiscard]] inline traces::request request_after(std::uint32_t before, double delay_s,
                                                   std::int32_t prompt, std::int32_t output) {
  traces::request r = request_at(0, prompt, output);
  r.after = before;
  r.delay = seconds_us(delay_s);
  return r;
}

/// Gives a request of `t` its prefix ids, all of them in order.
inline void set_prefix(traces::trace& t, std::size_t index, const std::vector<std::uint64_t>& ids) {
  t.requests[index].prefix_begin = static_cast<std::uint32_t>(t.prefix_ids.size());
  t.requests[index].prefix_count = static_cast<std::uint32_t>(ids.size());
  t.prefix_ids.insert(t.prefix_ids.end(), ids.begin(), ids.end());
}

[[nodiscard]] inline traces::trace trace_of(std::vector<traces::request> requests) {
  traces::trace t;
  t.requests = std::move(requests);
  t.format = "by hand";
  return t;
}

/// A world of 100 ms steps, with room for all: 1,000 blocks of 16 tokens.
[[nodiscard]] inline sim::simulation_options world_of(traces::trace trace) {
  sim::simulation_options options;
  options.trace = std::make_shared<traces::trace>(std::move(trace));
  options.engine.num_blocks = block_count{1000};
  options.engine.max_model_len = token_count{4096};
  options.cost = std::make_shared<flat_cost>(100'000);
  return options;
}

[[nodiscard]] inline sim::simulation_options world_of(std::vector<traces::request> requests) {
  return world_of(trace_of(std::move(requests)));
}

}  // namespace octavo::test
