// What code that calls the CUDA runtime itself needs of gpu/runtime: its returns turned
// into device_error, and handles. Part of the device's flavour only.
#pragma once

#include <cuda_runtime_api.h>

namespace octavo::gpu {

class stream;

/// Throws device_error, naming `call` and the current device, where `code` is an error.
void cuda_check(cudaError_t code, const char* call);

/// Makes `device` the current one where it is not, as calls on its streams need.
void cuda_use_device(int device);

/// The runtime's handle of a stream, for libraries that queue work on it.
cudaStream_t cuda_stream(stream& s);

}  // namespace octavo::gpu
