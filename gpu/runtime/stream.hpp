// Streams, events and graphs: work queued for a device. Emulated streams run
// nothing before someone synchronizes, so that a missing synchronization is seen.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "gpu/runtime/device_error.hpp"

namespace octavo::gpu {

class event;
class graph;

/// Work that runs in the order in which it was queued, on the device that was
/// current when the stream was made. Used by one thread at a time.
class stream {
 public:
  stream();
  stream(stream&&) noexcept;
  stream& operator=(stream&&) noexcept;
  /// Waits for what is queued, but its errors are lost; the emulator drops it, as what
  /// is not synchronized before has no claim to have run.
  ~stream();

  /// Waits until all queued work is done; throws device_error where any of it failed.
  void synchronize();

  /// Work queued from now on starts after what `e` recorded.
  void wait(const event& e);

  int device() const;

  /// Between the two, work is collected into a graph instead of run. Copies of
  /// memory that is not pinned, allocations and synchronizations are errors then.
  void begin_capture();
  graph end_capture();

  struct state;
  state& native() { return *state_; }

 private:
  std::unique_ptr<state> state_;
};

/// A point in a stream.
class event {
 public:
  event() : event(false) {}
  /// A timed one says when it was passed, which costs the device a little.
  explicit event(bool timed);
  event(event&&) noexcept;
  event& operator=(event&&) noexcept;
  ~event();

  void record(stream& s);
  /// Waits until what was recorded is done; at once where nothing was.
  void synchronize();
  /// Whether it is done.
  bool ready();
  /// Time between two recorded events that are timed and done. Emulated: one for each
  /// piece of work that ran between them.
  static double elapsed_ms(const event& from, const event& to);

  struct state;
  const state& native() const { return *state_; }

 private:
  std::unique_ptr<state> state_;
};

/// A captured sequence of work that is launched as one.
class graph {
 public:
  graph(graph&&) noexcept;
  graph& operator=(graph&&) noexcept;
  ~graph();

  /// Makes it launchable; launch() does so itself where this was not called.
  void instantiate();
  void launch(stream& s);

  struct state;
  explicit graph(std::unique_ptr<state> s);

 private:
  std::unique_ptr<state> state_;
};

/// Captures what `body()` queues on `s`.
template <class Body>
graph capture(stream& s, Body&& body) {
  s.begin_capture();
  try {
    body();
  } catch (...) {
    try {
      s.end_capture();
    } catch (const device_error&) {
      // The error of the body is the one to tell.
    }
    throw;
  }
  return s.end_capture();
}

// ---- copies, by addresses; see memory.hpp for typed arrays -------------------

/// Host to device. Memory that is not pinned is read before the call returns.
void copy_to_device(stream& s, void* device, const void* host, std::size_t bytes);
/// Device to host; there when the stream has been synchronized.
void copy_to_host(stream& s, void* host, const void* device, std::size_t bytes);
/// Between devices, or within one.
void copy_on_device(stream& s, void* to, const void* from, std::size_t bytes);
/// Sets every byte.
void fill_bytes(stream& s, void* device, int value, std::size_t bytes);

}  // namespace octavo::gpu
