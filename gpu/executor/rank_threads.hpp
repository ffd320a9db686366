// One host thread for each device of a group, which waits for work between steps. A group of
// one has none: its caller does the work, without two hops to another thread in each step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo::gpu {

class rank_threads {
 public:
  /// Rank r works with device `devices[r]`, which is current on its thread; that of a group
  /// of one stays current on the caller's.
  explicit rank_threads(const std::vector<int>& devices);
  ~rank_threads();
  rank_threads(const rank_threads&) = delete;
  rank_threads& operator=(const rank_threads&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(devices_.size()); }

  /// Runs work(rank) on every rank's thread and waits for all. Where one throws, on_failure
  /// is called at once (others may wait for it), and the first exception is thrown here.
  void run(const std::function<void(int)>& work, const std::function<void()>& on_failure = {});

 private:
  void serve(int rank, int device);

  std::vector<int> devices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(int)>* work_ = nullptr;
  const std::function<void()>* on_failure_ = nullptr;
  std::exception_ptr failure_;
  std::uint64_t rounds_ = 0;
  int busy_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace octavo::gpu
