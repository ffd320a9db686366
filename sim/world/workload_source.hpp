// The clients of the simulated world, as one actor: it submits requests when
// they arrive, hears tokens and ends, lets followers of a finished request come,
// keeps a closed loop full, cancels, and writes down what it sees.
#pragma once

#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "actors/engine_clock.hpp"
#include "actors/messages.hpp"
#include "sim/world/outcome.hpp"
#include "sim/world/workload.hpp"

namespace octavo::sim {

using arrive_atom = caf::atom_constant<caf::atom("arrive")>;
using start_atom = caf::atom_constant<caf::atom("start")>;

using source_actor =
    caf::typed_actor<caf::reacts_to<start_atom, actors::engine_actor>, caf::reacts_to<arrive_atom>,
                     caf::reacts_to<actors::cancel_atom, std::uint64_t>,
                     caf::reacts_to<actors::events_atom, actors::event_batch_ptr>>;

/// Hears how far the run is: requests ended, of how many.
using progress_callback = std::function<void(std::uint64_t ended, std::uint64_t total)>;

class workload_source : public source_actor::base {
 public:
  workload_source(caf::actor_config& config, std::shared_ptr<const workload> work,
                  actors::engine_clock clock, std::uint32_t replicas, simulation_outcome& outcome,
                  progress_callback progress);

  const char* name() const override { return "workload source"; }
  behavior_type make_behavior() override;
  void on_exit() override {
    engine_ = nullptr;
    self_sink_ = nullptr;  // a handle to itself
  }

 private:
  struct later {
    micros at;
    std::uint32_t index = 0;
    bool operator>(const later& other) const {
      return at != other.at ? at > other.at : index > other.index;
    }
  };
  struct gauge {
    micros since;
    std::int64_t waiting = 0;
    std::int64_t running = 0;
    block_count blocks_used;
    std::int64_t kv_tokens = 0;
  };

  [[nodiscard]] micros now();
  void arrive_due();
  void submit(std::uint32_t index);
  void arm();
  [[nodiscard]] bool arrives_by_itself(std::uint32_t index) const;
  void skip_dependent();
  void hear(const actors::event_batch& batch);
  void hear_finish(const finish_event& end, std::uint32_t replica);
  void release_followers(std::uint32_t index);
  void abandon(std::uint32_t index);
  void note_usage(const actors::event_batch& batch);
  void note_arrival();
  void drain_if_done();

  std::shared_ptr<const workload> work_;
  actors::engine_clock clock_;
  simulation_outcome& outcome_;
  progress_callback progress_;
  actors::engine_actor engine_;
  actors::sink_actor self_sink_;

  std::uint32_t next_ = 0;
  std::priority_queue<later, std::vector<later>, std::greater<>> dependent_;
  actors::submit_batch batch_;
  std::vector<gauge> gauges_;
  micros armed_{-1};
  std::uint64_t arrived_ = 0;
  std::uint64_t abandoned_ = 0;  ///< followers of requests that did not complete
  std::uint64_t ended_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t outstanding_ = 0;
  bool drained_ = false;
};

}  // namespace octavo::sim
