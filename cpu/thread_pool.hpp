// Threads for the inside of a step. Work is cut into chunks that threads take as
// they come free, so a thread that the system preempts delays one chunk, not its
// share of all, and one that has not even woken up delays nothing. Between pieces of
// work a worker spins for a moment, since the next piece follows within microseconds;
// then it sleeps, so that an idle engine costs nothing and a step does not starve the
// actors beside it.
//
//   thread_pool pool{2};
//   pool.run(tiles, [&](std::size_t tile) { … });   // returns when all are done
//
// Which thread takes which chunk is not determined; what a chunk computes must
// not depend on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace octavo::cpu {

class thread_pool {
 public:
  /// `threads` in all, the caller's included; at least 1.
  explicit thread_pool(std::size_t threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  /// Calls `task` for each of 0 … chunks - 1. One call at a time. `task` must not
  /// throw.
  void run(std::size_t chunks, const std::function<void(std::size_t)>& task);

  [[nodiscard]] std::size_t threads() const { return workers_.size() + 1; }

 private:
  void work();
  void take_chunks();

  /// Set before `tickets_` is, read only by who holds a ticket.
  const std::function<void(std::size_t)>* task_ = nullptr;
  /// Chunks of this call in the upper half, the next to take in the lower: one word,
  /// so that a thread that comes late takes a chunk of the present call or none.
  std::atomic<std::uint64_t> tickets_ = 0;
  /// Chunks of this call that are not done.
  std::atomic<std::uint32_t> left_ = 0;
  /// Counts calls of run(): a change tells the workers that there is work.
  std::atomic<std::uint32_t> call_ = 0;
  std::atomic<bool> ending_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace octavo::cpu
