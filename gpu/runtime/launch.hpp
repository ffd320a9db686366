// Launches kernels. Only .cu files include it: everything else calls the plain
// functions that they offer.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "gpu/cuda.hpp"
#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

struct launch_shape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  /// All blocks run at the same time, so that they may wait for each other.
  bool cooperative = false;
  /// For error messages; the emulator finds a name itself where none is given.
  const char* name = nullptr;
};

#if defined(OCTAVO_NATIVE_CUDA)
/// Launches on a device; `arguments` points to the value of each parameter.
void launch_native(stream& s, const launch_shape& shape, const void* kernel, void** arguments);
#else
/// Queues a launch for the emulator; `thread` runs one thread of the grid.
void launch_emulated(stream& s, const launch_shape& shape, const void* kernel,
                     std::function<void()> thread);
#endif

/// Queues kernel(arguments...) on `s`. Throws device_error for a shape that the
/// device refuses; errors within the kernel come from a later synchronize().
template <class... P, class... A>
void launch(stream& s, const launch_shape& shape, void (*kernel)(P...), A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  std::tuple<P...> values(static_cast<P>(std::forward<A>(arguments))...);
#if defined(OCTAVO_NATIVE_CUDA)
  std::apply(
      [&](P&... each) {
        void* addresses[sizeof...(P) + 1] = {const_cast<void*>(static_cast<const void*>(&each))...};
        launch_native(s, shape, reinterpret_cast<const void*>(kernel), addresses);
      },
      values);
#else
  launch_emulated(s, shape, reinterpret_cast<const void*>(kernel),
                  [kernel, values] { std::apply(kernel, values); });
#endif
}

}  // namespace octavo::gpu
