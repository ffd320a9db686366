// Ranks that read each other's memory: see event_communicator.hpp.
#include "gpu/executor/event_communicator.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "gpu/kernels/rank_sum/rank_sum.hpp"

namespace octavo::gpu {

event_communicator::event_communicator(int ranks)
    : members_(static_cast<std::size_t>(ranks)), calls_(static_cast<std::size_t>(ranks)) {
  if (ranks >= 1 && ranks <= rank_sum_max) return;
  throw input_error("tensor_parallel_size is " + std::to_string(ranks) + "; 1 to " +
                    std::to_string(rank_sum_max) + " are allowed");
}

void event_communicator::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  changed_.notify_all();
}

void event_communicator::wait_for_all(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t meeting = meetings_;
  if (++arrived_ == static_cast<int>(members_.size())) {
    arrived_ = 0;
    ++meetings_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return abandoned_ || meetings_ > meeting; });
  require_working();
}

// Twice around the host's barrier: first everyone's part and event are there, then
// everyone has queued its waits, so that the next call may record again.
std::vector<const float*> event_communicator::meet(stream& on, int rank, const float* part) {
  const auto mine = static_cast<std::size_t>(rank);
  const std::size_t turn = calls_[mine]++ % 2;
  members_[mine].ready[turn].record(on);
  std::unique_lock lock(mutex_);
  members_[mine].part = part;
  wait_for_all(lock);
  std::vector<const float*> parts;
  for (member& m : members_) {
    on.wait(m.ready[turn]);
    parts.push_back(m.part);
  }
  wait_for_all(lock);
  return parts;
}

void event_communicator::sum(stream& on, int rank, const partial_rows& partial, dtype type,
                             void* output) {
  const auto parts = meet(on, rank, partial.values);
  rank_sum_params p;
  p.ranks = static_cast<int>(parts.size());
  p.count = static_cast<std::int64_t>(partial.count());
  std::ranges::copy(parts, p.parts);
  p.type = type;
  p.output = output;
  rank_sum(p, on);
}

void event_communicator::gather(stream& on, int rank, const float* part, std::size_t count,
                                float* output) {
  const auto parts = meet(on, rank, part);
  for (std::size_t other = 0; other < parts.size(); ++other) {
    copy_on_device(on, output + other * count, parts[other], count * sizeof(float));
  }
}

}  // namespace octavo::gpu
