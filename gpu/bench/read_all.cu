// A kernel that only reads: the bandwidth that nothing can surpass.
#include "gpu/bench/bench.hpp"
#include "gpu/cuda.hpp"
#include "gpu/ptx.h"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr int threads = 512;
constexpr int ahead = 8;  // loads of a thread under way

__global__ void __launch_bounds__(threads)
    read_pieces(const uint4* from, std::size_t pieces, float* sink) {
  const std::size_t stride = std::size_t{gridDim.x} * threads;
  std::uint32_t all = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x; i < pieces;
       i += ahead * stride) {
    uint4 read[ahead] = {};
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      if (i + j * stride < pieces) read[j] = load_global_streaming(from + i + j * stride);
    }
#pragma unroll
    for (int j = 0; j < ahead; ++j) all |= read[j].x ^ read[j].y ^ read[j].z ^ read[j].w;
  }
  // Never so; but the compiler cannot know, and must read.
  if (all == 0x9e3779b9U) store_global(sink, 1.0F);
}

}  // namespace

void read_all(stream& on, const std::byte* from, std::size_t n, float* sink, int multiprocessors) {
  launch_shape shape{dim3(static_cast<unsigned>(4 * multiprocessors)), dim3(threads)};
  shape.name = "read_all";
  launch(on, shape, read_pieces, reinterpret_cast<const uint4*>(from), n / sizeof(uint4), sink);
}

}  // namespace octavo::gpu
