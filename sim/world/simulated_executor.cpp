// The simulated executor: see simulated_executor.hpp.
#include "sim/world/simulated_executor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace octavo::sim {

step_shape shape_of(const step& plan, std::vector<prefill_chunk>& chunks) {
  chunks.clear();
  step_shape shape;
  for (const sequence_work& work : plan.work) {
    const std::int64_t context = work.first_position.raw() + work.count.raw();
    shape.sampled_sequences += work.samples;
    if (work.decode) {
      ++shape.decode_sequences;
      shape.decode_context += context;
      shape.decode_context_max = std::max(shape.decode_context_max, context);
    } else {
      const std::int64_t tokens = work.count.raw() + work.padding.raw();
      chunks.push_back({tokens, work.first_position.raw()});
      shape.prefill_tokens += tokens;
    }
  }
  shape.chunks = chunks;
  return shape;
}

simulated_executor::simulated_executor(caf::actor_config& config,
                                       std::shared_ptr<const cost_model> cost,
                                       std::shared_ptr<const output_oracle> oracle, bool runs_ahead)
    : actors::executor_actor::base(config),
      cost_(std::move(cost)),
      oracle_(std::move(oracle)),
      runs_ahead_(runs_ahead) {}

actors::executor_actor::behavior_type simulated_executor::make_behavior() {
  return {
      [this](actors::step_atom, const step_ptr& plan) { execute(plan); },
      [this](actors::connect_atom, const actors::scheduler_actor& scheduler) {
        scheduler_ = scheduler;
      },
  };
}

void simulated_executor::execute(const step_ptr& plan) {
  const step_shape shape = shape_of(*plan, chunks_);
  const double device_us = cost_->device_time_us(shape);
  const double host_us = cost_->host_time_us(shape);
  // Run ahead, planning hides behind the device; else they take turns.
  const double total_us = runs_ahead_ ? std::max(device_us, host_us) : device_us + host_us;
  const auto duration = std::chrono::nanoseconds{std::max(1L, std::lround(total_us * 1e3))};
  for (std::uint32_t i = 0; i < plan->work.size(); ++i) {
    const sequence_work& work = plan->work[i];
    if (work.samples == 0) continue;
    // The token after position p is number p + 1; the text has `end` tokens.
    const std::int32_t known = work.first_position.raw() + work.count.raw() + 1;
    if (known < (*oracle_)[work.request.raw()]) continue;
    for (std::uint16_t k = 0; k < work.samples; ++k) {
      plan->result.finishes.push_back({i, k, finish_kind::eos});
    }
  }
  const auto now = clock().now();
  busy_until_ = std::max(now, busy_until_) + duration;
  delayed_send(scheduler_, busy_until_ - now, actors::result_atom::value, plan);
}

}  // namespace octavo::sim
