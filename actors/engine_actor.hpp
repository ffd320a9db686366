// The front door: routes requests to replicas, passes cancels after their
// submits on the same channel, and gathers statistics and explanations. Where
// there are several replicas their events come through here, because a router
// must hear what has finished.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "actors/messages.hpp"
#include "actors/ordered_actor.hpp"
#include "core/router.hpp"

namespace octavo::actors {

/// Hears each routing decision, in order.
class route_observer {
 public:
  virtual ~route_observer() = default;
  virtual void on_route(request_id id, const route& chosen) = 0;
};

class engine_shell : public ordered_actor<engine_actor::base> {
 public:
  engine_shell(caf::actor_config& config, router_kind kind, std::vector<scheduler_actor> replicas,
               route_observer* observer);

  const char* name() const override { return "engine"; }
  behavior_type make_behavior() override;
  void on_exit() override;

 private:
  void route_batch(const submit_batch& batch, const sink_actor& sink);
  void pass_on(const event_batch_ptr& batch);
  std::size_t sink_number(const sink_actor& sink);
  [[nodiscard]] const scheduler_actor* home_of(std::uint64_t id) const;
  [[nodiscard]] const scheduler_actor& who_explains(std::uint64_t id) const;
  void remember_home(std::uint64_t id, std::uint32_t replica);

  router router_;
  std::vector<scheduler_actor> replicas_;
  route_observer* observer_;
  std::vector<submit_batch> parts_;
  std::vector<sink_actor> sinks_;
  /// By live request, where there are several replicas.
  std::unordered_map<std::uint64_t, std::size_t> sink_of_;
  /// Where requests that ended had run, for explain; oldest forgotten first.
  std::unordered_map<std::uint64_t, std::uint32_t> former_home_;
  std::deque<std::uint64_t> former_order_;
};

}  // namespace octavo::actors
