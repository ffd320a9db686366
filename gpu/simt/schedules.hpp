// The schedules every kernel is tested under. A race shows only under some of
// them: FIFO hides missing barriers, eager copies hide missing waits, and lazy
// copies hide copies issued too early.
#pragma once

#if !defined(OCTAVO_NATIVE_CUDA)
#include "gpu/simt/options.hpp"
#endif

namespace octavo::gpu::simt {

#if defined(OCTAVO_NATIVE_CUDA)

/// On a device there is one schedule, its own.
template <class Body>
void for_each_schedule(Body&& body) {
  body("native");
}

#else

struct schedule {
  const char* name;
  thread_order order;
  copy_landing copies;
  std::uint64_t seed;
};

inline constexpr schedule schedules[] = {
    {"fifo, lazy copies", thread_order::fifo, copy_landing::lazy, 1},
    {"fifo, eager copies", thread_order::fifo, copy_landing::eager, 1},
    {"lifo, lazy copies", thread_order::lifo, copy_landing::lazy, 1},
    {"lifo, eager copies", thread_order::lifo, copy_landing::eager, 1},
    {"random 1, lazy copies", thread_order::random, copy_landing::lazy, 1},
    {"random 1, eager copies", thread_order::random, copy_landing::eager, 1},
    {"random 2, lazy copies", thread_order::random, copy_landing::lazy, 2},
    {"random 2, eager copies", thread_order::random, copy_landing::eager, 2},
};

/// Sets options for its lifetime and puts the former ones back.
class scoped_options {
 public:
  scoped_options() : former_(current_options()) {}
  explicit scoped_options(const schedule& s) : scoped_options() {
    current_options().order = s.order;
    current_options().copies = s.copies;
    current_options().seed = s.seed;
  }
  scoped_options(const scoped_options&) = delete;
  scoped_options& operator=(const scoped_options&) = delete;
  ~scoped_options() { current_options() = former_; }

 private:
  options former_;
};

/// Runs `body(name)` once under each schedule. The body must synchronize its
/// streams itself: what is queued when it returns runs under other options.
template <class Body>
void for_each_schedule(Body&& body) {
  for (const auto& s : schedules) {
    const scoped_options scope(s);
    body(s.name);
  }
}

#endif

}  // namespace octavo::gpu::simt
