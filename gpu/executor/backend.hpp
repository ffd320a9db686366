// What a flavour of the device code offers to programs: the emulator, which is part of
// them, and the library for hardware, which is loaded while they run.
#pragma once

#include <memory>
#include <vector>

#include "core/executor.hpp"
#include "gpu/executor/device_executor.hpp"
#include "gpu/runtime/device.hpp"
#include "model/container/checkpoint.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace octavo::gpu {

struct backend {
  /// Changes with every change of what crosses between program and library.
  const char* version = nullptr;
  /// As gpu::devices().
  std::vector<device_info> (*devices)() = nullptr;
  /// As device_executor's constructor.
  std::unique_ptr<executor> (*make_executor)(const model::checkpoint& source,
                                             model::tokenizer words,
                                             device_executor_options options) = nullptr;
};

/// Program and library are built together, from one source.
inline constexpr const char* backend_version = "octavo.gpu/1";
/// What the library exports: a function of type `const backend& ()`.
inline constexpr const char* backend_symbol = "octavo_gpu_backend";

/// The flavour that this is compiled into.
[[nodiscard]] const backend& this_backend();

}  // namespace octavo::gpu
