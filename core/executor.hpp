// The world at the end of the ring: what carries a step out. Real ones compute
// (cpu/, gpu/), the simulated one only knows how long it takes (sim/).
#pragma once

#include <string>

#include "core/config.hpp"
#include "core/step.hpp"
#include "core/units.hpp"

namespace octavo {

/// What an executor can do; the engine's configuration must agree with it.
struct executor_capabilities {
  std::vector<kv_group> kv_groups;
  std::int64_t block_bytes = 0;
  block_count num_blocks;
  token_count max_num_batched_tokens;
  std::string device_name;
};

class executor {
 public:
  virtual ~executor() = default;

  [[nodiscard]] virtual executor_capabilities capabilities() const = 0;
  /// Starts a step; steps run in the order in which they are submitted. Without running
  /// ahead there is one at a time, else a second may come while the first runs.
  virtual void submit(step_ptr plan) = 0;
  /// Waits at most `longest` for the oldest step. True: await() has the rest to do, and
  /// waits no more for a device. False: a moment to submit another.
  virtual bool wait_for(micros longest) {
    static_cast<void>(longest);
    return true;
  }
  /// Waits for the oldest step and fills its result.
  virtual step_ptr await() = 0;
};

}  // namespace octavo
