// Threads of a group: see rank_threads.hpp.
#include "gpu/executor/rank_threads.hpp"

#include "gpu/runtime/device.hpp"

namespace octavo::gpu {

rank_threads::rank_threads(const std::vector<int>& devices) : devices_(devices) {
  if (size() == 1) return;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    threads_.emplace_back(
        [this, rank, device = devices[rank]] { serve(static_cast<int>(rank), device); });
  }
}

rank_threads::~rank_threads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void rank_threads::run(const std::function<void(int)>& work,
                       const std::function<void()>& on_failure) {
  if (size() == 1) {
    set_device(devices_.front());
    return work(0);
  }
  std::unique_lock lock(mutex_);
  work_ = &work;
  on_failure_ = &on_failure;
  failure_ = nullptr;
  busy_ = size();
  ++rounds_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void rank_threads::serve(int rank, int device) {
  std::uint64_t done = 0;
  bool chosen = false;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || rounds_ > done; });
    if (ends_) return;
    done = rounds_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!chosen) set_device(device);
      chosen = true;
      (*work_)(rank);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) {
      failure_ = failure;
      if (*on_failure_) (*on_failure_)();
    }
    if (--busy_ == 0) changed_.notify_all();
  }
}

}  // namespace octavo::gpu
