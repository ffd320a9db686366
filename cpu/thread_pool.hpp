// Threads for the inside of a step. Work is cut into chunks that threads take as
// they come free, so a thread that the system preempts delays one chunk, not its
// share of all. Between pieces of work a worker spins for a moment, since the
// next piece follows within microseconds; then it sleeps, so that an idle engine
// costs nothing and a step does not starve the actors beside it.
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

  std::vector<std::jthread> workers_;
  const std::function<void(std::size_t)>* task_ = nullptr;
  std::size_t chunks_ = 0;
  /// Counts calls of run(): a change tells the workers that there is work.
  std::atomic<std::uint32_t> call_ = 0;
  std::atomic<std::size_t> next_ = 0;
  /// Workers that are not done with this call.
  std::atomic<std::uint32_t> busy_ = 0;
  std::atomic<bool> ending_ = false;
};

}  // namespace octavo::cpu
