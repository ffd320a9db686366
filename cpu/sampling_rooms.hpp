// Scratch for threads that sample: as many as ever sampled at once, kept for the
// next step.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "model/sampling/sampler.hpp"

namespace octavo::cpu {

struct sampling_room {
  model::sampler sampler;
  std::vector<float> logits;
};

class sampling_rooms {
  struct give_back {
    sampling_rooms* to;
    void operator()(sampling_room* room) const {
      const std::lock_guard hold{to->mutex_};
      to->free_.emplace_back(room);
    }
  };

 public:
  /// A room of one's own until the pointer goes.
  [[nodiscard]] std::unique_ptr<sampling_room, give_back> take() {
    const std::lock_guard hold{mutex_};
    if (free_.empty()) return {new sampling_room, give_back{this}};
    std::unique_ptr<sampling_room, give_back> room{free_.back().release(), give_back{this}};
    free_.pop_back();
    return room;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<sampling_room>> free_;
};

}  // namespace octavo::cpu
