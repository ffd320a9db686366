// The queue behind an emulated stream. Included by the emulated back end only.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

namespace emulated {

struct queue;

/// One piece of queued work. It runs after `position` pieces of `other` are done.
struct work {
  std::function<void()> run;
  std::shared_ptr<queue> other;
  std::uint64_t position = 0;
};

struct queue {
  std::deque<work> pending;
  std::atomic<std::uint64_t> queued = 0;  // pieces so far
  std::atomic<std::uint64_t> done = 0;
  bool running = false;  // some thread runs the piece after the last that is done
};

/// Adds work to the stream's queue, or to what it captures.
void enqueue(stream::state& s, work w);

/// Runs the queue's work, and what it waits for, until `position` pieces are done.
void run_until(queue& q, std::uint64_t position);

/// Forgets what has not run; who waits for it goes on.
void drop(queue& q);

/// Pieces of work that have run, of all queues: the time that events record.
extern std::atomic<std::uint64_t> pieces_run;

/// Captures under way in the calling thread.
extern thread_local int captures;

}  // namespace emulated

struct stream::state {
  int device = 0;
  std::shared_ptr<emulated::queue> queue;
  bool capturing = false;
  std::vector<emulated::work> captured;
};

struct event::state {
  std::shared_ptr<emulated::queue> queue;  // null: nothing recorded
  std::uint64_t position = 0;
  std::shared_ptr<double> time_ms;
  bool timed = false;
};

struct graph::state {
  std::vector<emulated::work> captured;
};

}  // namespace octavo::gpu
