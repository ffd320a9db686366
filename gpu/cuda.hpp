// What kernels include, and nothing else of CUDA: for a device the toolkit's
// headers, under a C++ compiler the same names on top of the emulator, so that one
// source serves both. Kernels use dynamic shared memory only, through OCTAVO_SHARED.
// OCTAVO_NATIVE_CUDA is defined in all of the device's flavour, kernels and host code.
#pragma once

#if defined(__CUDACC__) && !defined(OCTAVO_NATIVE_CUDA)
#define OCTAVO_NATIVE_CUDA
#endif

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstddef>
#include <cstdint>

#if defined(OCTAVO_NATIVE_CUDA)
#include <cuda_runtime.h>

/// Declares `name` as the block's dynamic shared memory.
#define OCTAVO_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#else
#include "gpu/simt/device_functions.hpp"
#include "gpu/simt/device_math.hpp"

#define OCTAVO_SHARED(name) \
  unsigned char* const name = ::octavo::gpu::simt::current_thread->block->shared

#define threadIdx (::octavo::gpu::simt::current_thread->index)
#define blockIdx (::octavo::gpu::simt::current_thread->block->index)
#define blockDim (::octavo::gpu::simt::current_thread->block->size)
#define gridDim (::octavo::gpu::simt::current_thread->block->grid)

// The toolkit's headers make it empty here, which would give every thread a copy
// of its own; an unknown name is the better answer.
#undef __shared__
#undef __launch_bounds__
#define __launch_bounds__(...)
#endif
