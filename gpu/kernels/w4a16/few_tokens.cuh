// Products for up to 8 tokens with weights in the lane layout.
//
// The weights are the left operand of mma.m16n8k16 and the tokens its 8 columns: a
// lane's bytes are laid out for the right operand of two n8 tiles, and the same
// registers, in another order, are the left operand of one m16 tile. Weights go from
// memory to registers, the next batch on its way while one is used; the warps of a
// block share out the inputs and join their sums in order.
#pragma once

#include "gpu/kernels/dense_gemm/fragments.cuh"
#include "gpu/kernels/dense_gemm/gemm_output.cuh"
#include "gpu/kernels/w4a16/lane_layout.hpp"

namespace octavo::gpu {

inline constexpr int few_tokens_max = 8;
inline constexpr int few_tokens_threads = 256;
inline constexpr int few_tokens_warps = few_tokens_threads / 32;
/// Slices of 16 inputs that a warp loads at once.
inline constexpr int few_tokens_batch = 4;

struct few_tokens_arguments {
  const void* activations = nullptr;
  const unsigned char* codes = nullptr;
  const void* scales = nullptr;
  const unsigned char* zeros = nullptr;
  int inputs = 0;
  int group = 0;
  int blocks = 0;      ///< of columns
  int run_slices = 0;  ///< of 16 inputs, a block; a multiple of 8
  gemm_output output;
};

/// Room for the tokens' inputs, and later for the warps' sums.
template <class Codec>
constexpr std::size_t few_tokens_shared_bytes(int tokens, int run_slices) {
  const std::size_t inputs = static_cast<std::size_t>(tokens) * (run_slices * 16 + 8) * 2;
  const std::size_t sums =
      static_cast<std::size_t>(few_tokens_warps * few_tokens_max) * (Codec::block_columns + 4) * 4 +
      16;
  return inputs > sums ? inputs : sums;
}

/// A lane's weights of few_tokens_batch slices, and the factors of each two.
template <class Codec>
struct lane_batch {
  uint4 codes[few_tokens_batch];
  typename Codec::scale_vector scales[few_tokens_batch / 2];
  typename Codec::zero_vector zeros[few_tokens_batch / 2];
};

/// Loads batches in the order of the inputs; factors only where the group changes.
template <class Codec>
struct lane_loader {
  const few_tokens_arguments& t;
  int block;
  int lane;
  int group = -1;
  typename Codec::scale_vector scales = Codec::unit_scales();
  typename Codec::zero_vector zeros = Codec::middle();

  __device__ void load_factors(int slice) {
    const int wanted = slice * 16 / t.group;
    if (t.scales == nullptr || wanted == group) return;
    group = wanted;
    const std::size_t columns = static_cast<std::size_t>(t.blocks) * Codec::block_columns;
    const std::size_t place =
        wanted * columns + block * Codec::block_columns + lane / 4 * (Codec::block_columns / 8);
    scales = load_global(reinterpret_cast<const typename Codec::scale_vector*>(
        static_cast<const unsigned char*>(t.scales) + place * 2));
    if (t.zeros != nullptr) {
      zeros = load_global(reinterpret_cast<const typename Codec::zero_vector*>(t.zeros + place));
    }
  }

  __device__ lane_batch<Codec> load(int slice, int end) {
    lane_batch<Codec> batch;
#pragma unroll
    for (int i = 0; i < few_tokens_batch; ++i) {
      batch.codes[i] = make_uint4(0, 0, 0, 0);
      if (slice + i >= end) continue;
      const std::size_t piece =
          (static_cast<std::size_t>(slice + i) * t.blocks + block) * 32 + lane;
      batch.codes[i] = load_global_streaming(reinterpret_cast<const uint4*>(t.codes) + piece);
    }
#pragma unroll
    for (int i = 0; i < few_tokens_batch / 2; ++i) {
      if (slice + 2 * i < end) load_factors(slice + 2 * i);
      batch.scales[i] = scales;
      batch.zeros[i] = zeros;
    }
    return batch;
  }
};

/// Adds a batch's products. `inputs` points to the first input of the batch.
template <class Codec>
__device__ void multiply_batch(const lane_batch<Codec>& batch,
                               const typename Codec::element* inputs, int stride, int slices,
                               int tokens, int lane, float (&sums)[Codec::tiles][4]) {
#pragma unroll
  for (int i = 0; i < few_tokens_batch; ++i) {
    if (i >= slices) return;
    const auto factors = Codec::unpack_factors(batch.scales[i / 2], batch.zeros[i / 2]);
    std::uint32_t x[2] = {0, 0};
    if (lane / 4 < tokens) {
      const auto* row = inputs + lane / 4 * stride + i * 16 + lane % 4 * 2;
      x[0] = *reinterpret_cast<const std::uint32_t*>(row);
      x[1] = *reinterpret_cast<const std::uint32_t*>(row + 8);
    }
#pragma unroll
    for (int tile = 0; tile < Codec::tiles; ++tile) {
      std::uint32_t w[4];
      Codec::unpack(batch.codes[i], tile, factors, w);
      const std::uint32_t left[4] = {w[0], w[2], w[1], w[3]};
      mma_16x8x16<typename Codec::element>(sums[tile], left, x);
    }
  }
}

/// Adds the warps' sums in order; leaves [token][block_columns + 4] at `shared`.
template <class Codec>
__device__ void join_few_tokens(float* shared, const float (&mine)[Codec::tiles][4], int warp,
                                int lane) {
  constexpr int stride = Codec::block_columns + 4;
  constexpr int warp_floats = few_tokens_max * stride;
  float* own = shared + warp * warp_floats;
#pragma unroll
  for (int tile = 0; tile < Codec::tiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = lane % 4 * 2 + i % 2;
      own[token * stride + tile * 16 + i / 2 * 8 + lane / 4] = mine[tile][i];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < few_tokens_max * Codec::block_columns; i += few_tokens_threads) {
    const int place = i / Codec::block_columns * stride + i % Codec::block_columns;
    float sum = shared[place];
    for (int other = 1; other < few_tokens_warps; ++other) {
      sum += shared[other * warp_floats + place];
    }
    shared[place] = sum;
  }
  __syncthreads();
}

/// Copies the inputs of this block's run for every token; zeros past the end.
template <class T>
__device__ void fetch_few_tokens(const few_tokens_arguments& t, unsigned char* shared, int input0) {
  const int pieces = t.run_slices * 2;
  const int stride = (t.run_slices * 16 + 8) * 2;
  for (int i = threadIdx.x; i < t.output.rows * pieces; i += few_tokens_threads) {
    const int token = i / pieces;
    const int input = input0 + i % pieces * 8;
    const T* from = static_cast<const T*>(t.activations);
    if (input < t.inputs) from += static_cast<std::size_t>(token) * t.inputs + input;
    cp_async16_or_zero(shared + token * stride + i % pieces * 16, from, input < t.inputs);
  }
  cp_async_commit();
}

/// Grid: x = blocks of columns, y = runs along the inputs.
template <class Codec>
__global__ void __launch_bounds__(few_tokens_threads) few_tokens_gemm(few_tokens_arguments t) {
  using element = typename Codec::element;
  OCTAVO_SHARED(shared);
  const int slices = (t.inputs + 15) / 16;
  const int run_begin = static_cast<int>(blockIdx.y) * t.run_slices;
  const int run_end = min(slices, run_begin + t.run_slices);
  fetch_few_tokens<element>(t, shared, run_begin * 16);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  // A multiple of 2, so that the factors of two slices are the same.
  const int share = ((t.run_slices + few_tokens_warps - 1) / few_tokens_warps + 1) / 2 * 2;
  const int begin = min(run_end, run_begin + warp * share);
  const int end = min(run_end, begin + share);
  lane_loader<Codec> loader{t, static_cast<int>(blockIdx.x), lane};
  lane_batch<Codec> batch = loader.load(begin, end);
  cp_async_wait<0>();
  __syncthreads();
  const auto* inputs = reinterpret_cast<const element*>(shared);
  float sums[Codec::tiles][4] = {};
  for (int slice = begin; slice < end; slice += few_tokens_batch) {
    const lane_batch<Codec> next = loader.load(slice + few_tokens_batch, end);
    multiply_batch<Codec>(batch, inputs + (slice - run_begin) * 16, t.run_slices * 16 + 8,
                          end - slice, t.output.rows, lane, sums);
    batch = next;
  }
  __syncthreads();
  float* joined = reinterpret_cast<float*>(shared);
  join_few_tokens<Codec>(joined, sums, warp, lane);
  tile_shares shares;
  shares.count = static_cast<int>(gridDim.y);
  shares.mine = static_cast<int>(blockIdx.y);
  shares.base = static_cast<int>(blockIdx.x * gridDim.y);
  shares.counter = static_cast<int>(blockIdx.x);
  constexpr int floats = few_tokens_warps * few_tokens_max * (Codec::block_columns + 4);
  finish_tile<element, few_tokens_max, Codec::block_columns, few_tokens_threads>(
      t.output, joined, reinterpret_cast<int*>(joined + floats), shares, 0,
      static_cast<int>(blockIdx.x) * Codec::block_columns);
}

}  // namespace octavo::gpu
