// This flavour's backend: see backend.hpp.
#include "gpu/executor/backend.hpp"

#include <utility>

namespace octavo::gpu {
namespace {

std::unique_ptr<executor> make_executor(const model::checkpoint& source, model::tokenizer words,
                                        device_executor_options options) {
  return std::make_unique<device_executor>(source, std::move(words), std::move(options));
}

}  // namespace

const backend& this_backend() {
  static const backend made{backend_version, devices, make_executor};
  return made;
}

}  // namespace octavo::gpu

#if defined(OCTAVO_NATIVE_CUDA)
extern "C" __attribute__((visibility("default"))) const octavo::gpu::backend& octavo_gpu_backend() {
  return octavo::gpu::this_backend();
}
#endif
