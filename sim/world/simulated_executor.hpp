// The executor of the simulated world: it knows how long a step takes and when
// each sequence ends, and computes nothing. Its answer travels on the virtual
// clock. Steps run one after another, also when the scheduler runs ahead.
#pragma once

#include <memory>
#include <vector>

#include "actors/engine_clock.hpp"
#include "actors/messages.hpp"
#include "sim/cost/cost_model.hpp"

namespace octavo::sim {

/// Where each request's text ends, by request number: prompt plus output tokens.
/// Only the executor may know.
using output_oracle = std::vector<std::int32_t>;

/// The aggregates of a plan that a cost model prices. `chunks` is scratch that
/// the shape points into.
[[nodiscard]] step_shape shape_of(const step& plan, std::vector<prefill_chunk>& chunks);

class simulated_executor : public actors::executor_actor::base {
 public:
  simulated_executor(caf::actor_config& config, std::shared_ptr<const cost_model> cost,
                     std::shared_ptr<const output_oracle> oracle, bool runs_ahead);

  const char* name() const override { return "simulated executor"; }
  behavior_type make_behavior() override;
  void on_exit() override { scheduler_ = nullptr; }

 private:
  void execute(const step_ptr& plan);

  std::shared_ptr<const cost_model> cost_;
  std::shared_ptr<const output_oracle> oracle_;
  bool runs_ahead_;
  actors::scheduler_actor scheduler_;
  std::vector<prefill_chunk> chunks_;
  caf::actor_clock::time_point busy_until_{};
};

}  // namespace octavo::sim
