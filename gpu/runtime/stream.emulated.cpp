// Streams, events and graphs of the emulator: queues of work that run on the host
// when someone synchronizes.
#include "gpu/runtime/stream.hpp"

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "gpu/runtime/device.hpp"
#include "gpu/runtime/emulated_queue.hpp"
#include "gpu/simt/memory_map.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* capture_advice =
    "while a stream captures, its work is only collected: end the capture first";

void require_live(const char* call, const void* address, std::size_t bytes) {
  const auto problem = simt::range_problem(address, bytes);
  if (!problem.empty()) throw device_error(call, current_device(), problem, "");
}

void require_pinned_in_capture(const stream::state& s, const char* call, const void* host,
                               std::size_t bytes) {
  if (!s.capturing || simt::is_pinned(host, bytes)) return;
  throw device_error(call, s.device, "a capture holds a copy of memory that is not pinned",
                     "use a pinned_array");
}

void queue_copy(stream& s, std::function<void()> copy) {
  emulated::enqueue(s.native(), {std::move(copy), nullptr, 0});
}

}  // namespace

// ---- queues -----------------------------------------------------------------

namespace emulated {

// One mutex for the bookkeeping of all queues; it is not held while work runs.
std::mutex mutex;
std::condition_variable changed;
thread_local int captures = 0;
std::atomic<std::uint64_t> pieces_run{0};

void enqueue(stream::state& s, work w) {
  if (s.capturing) {
    s.captured.push_back(std::move(w));
    return;
  }
  const std::lock_guard lock(mutex);
  s.queue->pending.push_back(std::move(w));
  ++s.queue->queued;
}

namespace {

/// Runs the first piece of work, without the lock.
void run_front(queue& q, std::unique_lock<std::mutex>& lock) {
  work w = std::move(q.pending.front());
  q.pending.pop_front();
  q.running = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    w.run();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  q.running = false;
  ++q.done;
  ++pieces_run;
  if (failure) {
    // As on a device, what follows a failure does not run.
    q.done = q.queued.load();
    q.pending.clear();
  }
  changed.notify_all();
  if (failure) std::rethrow_exception(failure);
}

void run_until(queue& q, std::uint64_t position, std::unique_lock<std::mutex>& lock) {
  while (q.done < position) {
    if (q.running) {
      changed.wait(lock);
      continue;
    }
    // A copy: the front may be taken by another thread meanwhile.
    const auto other = q.pending.front().other;
    const auto needs = q.pending.front().position;
    if (other != nullptr && other->done < needs) {
      run_until(*other, needs, lock);
    } else {
      run_front(q, lock);
    }
  }
}

}  // namespace

void run_until(queue& q, std::uint64_t position) {
  std::unique_lock lock(mutex);
  run_until(q, position, lock);
}

void drop(queue& q) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return !q.running; });
  q.pending.clear();
  q.done = q.queued.load();
  changed.notify_all();
}

}  // namespace emulated

// ---- streams ----------------------------------------------------------------

stream::stream() : state_(std::make_unique<state>()) {
  state_->device = current_device();
  state_->queue = std::make_shared<emulated::queue>();
}
stream::stream(stream&&) noexcept = default;
stream& stream::operator=(stream&& o) noexcept {
  std::swap(state_, o.state_);
  return *this;
}

stream::~stream() {
  if (state_ != nullptr) emulated::drop(*state_->queue);
}

int stream::device() const {
  return state_->device;
}

void stream::synchronize() {
  if (state_->capturing) {
    throw device_error("stream::synchronize", device(), "the stream is capturing", capture_advice);
  }
  emulated::run_until(*state_->queue, state_->queue->queued);
}

void stream::wait(const event& e) {
  const auto& recorded = e.native();
  if (recorded.queue == nullptr || state_->capturing) return;
  emulated::enqueue(*state_, {[] {}, recorded.queue, recorded.position});
}

void stream::begin_capture() {
  if (state_->capturing) {
    throw device_error("stream::begin_capture", device(), "the stream is capturing already", "");
  }
  state_->capturing = true;
  state_->captured.clear();
  ++emulated::captures;
}

graph stream::end_capture() {
  if (!state_->capturing) {
    throw device_error("stream::end_capture", device(), "the stream is not capturing", "");
  }
  state_->capturing = false;
  --emulated::captures;
  auto g = std::make_unique<graph::state>();
  g->captured = std::move(state_->captured);
  return graph(std::move(g));
}

// ---- events -----------------------------------------------------------------

event::event(bool timed) : state_(std::make_unique<state>()) {
  state_->timed = timed;
}
event::event(event&&) noexcept = default;
event& event::operator=(event&&) noexcept = default;
event::~event() = default;

void event::record(stream& s) {
  auto time = std::make_shared<double>(0);
  emulated::enqueue(s.native(),
                    {[time] { *time = static_cast<double>(emulated::pieces_run); }, nullptr, 0});
  if (s.native().capturing) return;
  state_->queue = s.native().queue;
  state_->position = s.native().queue->queued;
  state_->time_ms = std::move(time);
}

void event::synchronize() {
  if (state_->queue != nullptr) emulated::run_until(*state_->queue, state_->position);
}

bool event::ready() {
  if (state_->queue == nullptr || state_->queue->done >= state_->position) return true;
  // Who asks again and again must get on: each question runs one piece of work.
  emulated::run_until(*state_->queue, state_->queue->done + 1);
  return state_->queue->done >= state_->position;
}

double event::elapsed_ms(const event& from, const event& to) {
  if (from.state_->time_ms == nullptr || to.state_->time_ms == nullptr) {
    throw device_error("event::elapsed_ms", current_device(), "an event was not recorded", "");
  }
  if (!from.state_->timed || !to.state_->timed) {
    throw device_error("event::elapsed_ms", current_device(), "an event is not timed", "");
  }
  return *to.state_->time_ms - *from.state_->time_ms;
}

// ---- graphs -----------------------------------------------------------------

graph::graph(std::unique_ptr<state> s) : state_(std::move(s)) {}
graph::graph(graph&&) noexcept = default;
graph& graph::operator=(graph&&) noexcept = default;
graph::~graph() = default;

void graph::instantiate() {}

void graph::launch(stream& s) {
  for (const auto& w : state_->captured) emulated::enqueue(s.native(), w);
}

// ---- copies -----------------------------------------------------------------

// Ranges are checked at the call, where a mistake is easiest to find, and again when
// the copy runs: the memory may have been freed meanwhile.

void copy_to_device(stream& s, void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  require_live("copy_to_device", device, bytes);
  require_pinned_in_capture(s.native(), "copy_to_device", host, bytes);
  const auto put = [device, bytes](const void* from) {
    require_live("copy_to_device", device, bytes);
    std::memcpy(device, from, bytes);
  };
  if (simt::is_pinned(host, bytes)) {
    queue_copy(s, [=] {
      require_live("copy_to_device", host, bytes);
      put(host);
    });
    return;
  }
  const auto* first = static_cast<const unsigned char*>(host);
  queue_copy(
      s, [put, taken = std::vector<unsigned char>(first, first + bytes)] { put(taken.data()); });
}

void copy_to_host(stream& s, void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  require_live("copy_to_host", device, bytes);
  require_pinned_in_capture(s.native(), "copy_to_host", host, bytes);
  queue_copy(s, [=] {
    require_live("copy_to_host", device, bytes);
    std::memcpy(host, device, bytes);
  });
}

void copy_on_device(stream& s, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const auto check = [=] {
    require_live("copy_on_device", to, bytes);
    require_live("copy_on_device", from, bytes);
  };
  check();
  queue_copy(s, [=] {
    check();
    std::memmove(to, from, bytes);
  });
}

void fill_bytes(stream& s, void* device, int value, std::size_t bytes) {
  if (bytes == 0) return;
  require_live("fill_bytes", device, bytes);
  queue_copy(s, [=] {
    require_live("fill_bytes", device, bytes);
    std::memset(device, value, bytes);
  });
}

}  // namespace octavo::gpu
