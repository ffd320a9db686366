// Finds the library for CUDA devices while the program runs, so that one program starts
// everywhere: without a driver, without a device, without the library.
#pragma once

#include <string>

#include "gpu/executor/backend.hpp"

namespace octavo::gpu {

/// The library, or why there is none.
struct loaded_backend {
  const backend* found = nullptr;
  std::string problem;
};

/// Looks for liboctavo_cuda.so beside the program, once; the library stays loaded.
/// OCTAVO_CUDA_LIBRARY names another file.
[[nodiscard]] const loaded_backend& cuda_backend();

/// The same for one file, each time.
[[nodiscard]] loaded_backend load_backend(const std::string& path);

}  // namespace octavo::gpu
