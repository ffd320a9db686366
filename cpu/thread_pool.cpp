// Threads for the inside of a step: see thread_pool.hpp.
#include "cpu/thread_pool.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace octavo::cpu {
namespace {

/// Some 20 to 50 microseconds: longer than the gap between two pieces of a step.
constexpr int spins_before_sleep = 1000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Waits until `value` is no longer `old`: spinning first, then asleep.
template <class T>
void wait_for_change(const std::atomic<T>& value, T old) {
  for (int i = 0; i < spins_before_sleep; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

thread_pool::thread_pool(std::size_t threads) {
  for (std::size_t i = 1; i < std::max<std::size_t>(threads, 1); ++i) {
    workers_.emplace_back([this] { work(); });
  }
}

thread_pool::~thread_pool() {
  ending_ = true;
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
}

void thread_pool::run(std::size_t chunks, const std::function<void(std::size_t)>& task) {
  if (chunks == 0) return;
  if (workers_.empty() || chunks == 1) {
    for (std::size_t i = 0; i < chunks; ++i) task(i);
    return;
  }
  task_ = &task;
  left_.store(static_cast<std::uint32_t>(chunks), std::memory_order_relaxed);
  tickets_.store(std::uint64_t{chunks} << 32U, std::memory_order_release);
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
  take_chunks();
  for (std::uint32_t left = left_.load(std::memory_order_acquire); left != 0;
       left = left_.load(std::memory_order_acquire)) {
    wait_for_change(left_, left);
  }
}

void thread_pool::take_chunks() {
  std::uint64_t ticket = tickets_.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t chunks = ticket >> 32U;
    const std::uint64_t next = ticket & 0xFFFF'FFFFU;
    if (next >= chunks) return;
    if (!tickets_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      continue;
    }
    (*task_)(next);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    ticket = tickets_.load(std::memory_order_acquire);
  }
}

void thread_pool::work() {
  std::uint32_t seen = 0;
  for (;;) {
    wait_for_change(call_, seen);
    const std::uint32_t call = call_.load(std::memory_order_acquire);
    if (call == seen) continue;
    seen = call;
    if (ending_) return;
    take_chunks();
  }
}

}  // namespace octavo::cpu
