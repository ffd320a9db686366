// The engine's actors as the gateway sees them: what it asks goes out as messages, what
// comes back is posted to the network thread, a step's tokens in one post.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <caf/actor_system.hpp>

#include "actors/messages.hpp"
#include "web/gateway/engine_link.hpp"

namespace octavo::gateway {

/// Where answers are heard; set before anything is asked. Functions may be called on any
/// thread.
struct link_ears {
  std::function<void(actors::event_batch_ptr)> hear;
  std::function<void(std::function<void()>)> post;
  std::function<void(std::string)> engine_failed;
};

class actor_link final : public engine_link {
 public:
  /// Watches `engine` and `parts`: where one of them ends, the engine has failed.
  actor_link(caf::actor_system& system, actors::engine_actor engine,
             std::vector<caf::actor_addr> parts, link_ears ears);
  ~actor_link() override;

  void submit(std::vector<request_spec> requests) override;
  void cancel(request_id id) override;
  void drain() override;
  void ask_statistics(std::function<void(const actors::statistics_list&)> answer) override;
  void ask_explanation(request_id id, std::function<void(std::string)> answer) override;

 private:
  caf::actor_system& system_;
  actors::engine_actor engine_;
  actors::sink_actor sink_;
  link_ears ears_;
  caf::actor watcher_;
};

}  // namespace octavo::gateway
