// The kernel: a block has some heads of one row, a thread eight elements of a head.
// Heads are numbered queries first, then keys, then values.
#pragma once

#include "gpu/kernels/paged_attention/elements.cuh"
#include "gpu/kernels/rope_kv_write/rope_kv_write.hpp"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {

/// Faults that tests seed, to see that they are found.
enum class rope_bug { none, page_off_by_one, turn_without_barrier };

inline constexpr int rope_threads = 128;

/// A thread's place: eight elements from `column` on of head `head` of its kind.
struct rope_place {
  enum kind { query, key, value, none };
  kind what = none;
  int head = 0;
  int column = 0;
  int first = 0;  // the head's first element in shared memory
};

OCTAVO_DEVICE rope_place place_of(const rope_kv_write_run& run) {
  const int vectors = run.head_dim / 8;
  const int heads = rope_threads / vectors;
  const int in_block = static_cast<int>(threadIdx.x) / vectors;
  int head = static_cast<int>(blockIdx.y) * heads + in_block;
  rope_place place;
  place.column = static_cast<int>(threadIdx.x) % vectors * 8;
  place.first = in_block * run.head_dim;
  if (in_block >= heads) return place;
  if (head < run.heads) {
    place.what = rope_place::query;
  } else if (head -= run.heads; head < run.kv_heads) {
    place.what = rope_place::key;
  } else if (head -= run.kv_heads; head < run.kv_heads) {
    place.what = rope_place::value;
  }
  place.head = head;
  return place;
}

template <class T>
OCTAVO_DEVICE void load_elements(const rope_kv_write_run& run, const rope_place& place,
                                 float (&x)[8]) {
  const void* from = run.queries;
  std::int64_t stride = run.query_stride;
  if (place.what == rope_place::key) {
    from = run.keys;
    stride = run.key_stride;
  } else if (place.what == rope_place::value) {
    from = run.values;
    stride = run.value_stride;
  }
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * stride +
                          static_cast<std::int64_t>(place.head) * run.head_dim + place.column;
  to_floats<T, T>(load_global(reinterpret_cast<const uint4*>(static_cast<const T*>(from) + at)), x);
}

/// Multiplies by the norm's factor; `squares` holds each thread's sum of squares.
OCTAVO_DEVICE void norm_elements(const rope_kv_write_run& run, const rope_place& place,
                                 const float* squares, float (&x)[8]) {
  const float* weights = place.what == rope_place::query ? run.query_norm : run.key_norm;
  if (weights == nullptr || place.what == rope_place::value) return;
  float sum = 0;
  for (int i = 0; i < run.head_dim / 8; ++i) sum += load_shared(squares + place.first / 8 + i);
  const float mean = sum / static_cast<float>(run.head_dim);
  const float factor = 1.0F / sqrtf(mean + run.norm_epsilon);
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    const auto w = load_global(reinterpret_cast<const float4*>(weights + place.column + i));
    const float four[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) x[i + j] *= factor * four[j];
  }
}

/// Cosine and sine of x half turns.
OCTAVO_DEVICE float2 cosine_and_sine(float x) {
#if defined(__CUDACC__)
  float2 out;
  sincospif(x, &out.y, &out.x);
  return out;
#else
  const double angle = static_cast<double>(x) * 3.14159265358979323846;
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
#endif
}

/// Cosine and sine of a pair at a position; NaN beyond a table.
OCTAVO_DEVICE float2 angle_of(const rope_source& rope, int position, int pair) {
  if (rope.cosines != nullptr) {
    if (position >= rope.table_positions) return {NAN, NAN};
    const std::int64_t at = static_cast<std::int64_t>(position) * rope.pairs + pair;
    return {load_global(rope.cosines + at), load_global(rope.sines + at)};
  }
  // The product keeps what is left of full turns; as a signed number, of half turns.
  const std::uint64_t turn = load_global(rope.turns + pair) * static_cast<std::uint64_t>(position);
  const float halves = static_cast<float>(static_cast<std::int64_t>(turn)) * 0x1p-63F;
  const float2 out = cosine_and_sine(halves);
  return {out.x * rope.magnitude, out.y * rope.magnitude};
}

/// Turns a thread's elements; `head` holds the whole head as it was.
OCTAVO_DEVICE void turn_elements(const rope_source& rope, int position, int column,
                                 const float* head, float (&x)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int element = column + i;
    if (element >= 2 * rope.pairs) continue;
    const bool halves = rope.style == rope_style::halves;
    const int pair = halves ? element % rope.pairs : element / 2;
    const bool first = halves ? element < rope.pairs : element % 2 == 0;
    const int distance = halves ? rope.pairs : 1;
    const float other = load_shared(head + element + (first ? distance : -distance));
    const float2 angle = angle_of(rope, position, pair);
    x[i] = first ? fmaf(x[i], angle.x, -(other * angle.y)) : fmaf(x[i], angle.x, other * angle.y);
  }
}

template <class T>
OCTAVO_DEVICE uint4 pack_elements(const float (&x)[8]) {
  return {pack<T>(x[0], x[1]), pack<T>(x[2], x[3]), pack<T>(x[4], x[5]), pack<T>(x[6], x[7])};
}

/// Eight elements as e4m3, the largest finite number where they are too large.
OCTAVO_DEVICE uint2 pack_e4m3(const float (&x)[8], float factor) {
  std::uint32_t words[2] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const auto byte = __nv_cvt_float_to_fp8(x[i] * factor, __NV_SATFINITE, __NV_E4M3);
    words[i / 4] |= static_cast<std::uint32_t>(byte) << i % 4 * 8;
  }
  return {words[0], words[1]};
}

template <class T, class KV, rope_bug bug>
OCTAVO_DEVICE void write_to_page(const rope_kv_write_run& run, const rope_place& place,
                                 int position, const float (&x)[8]) {
  const int sequence = load_global(run.sequence_of_row + blockIdx.x);
  if (sequence < 0) return;
  int block = position / kv_page_tokens;
  if constexpr (bug == rope_bug::page_off_by_one) block = block > 0 ? block - 1 : block;
  const int page = load_global(run.tables + (load_global(run.sequence_tables + sequence) + block));
  const bool is_key = place.what == rope_place::key;
  const std::int64_t row =
      (static_cast<std::int64_t>(page) * run.kv_heads + place.head) * kv_page_tokens +
      position % kv_page_tokens;
  auto* to = static_cast<KV*>(is_key ? run.key_pages : run.value_pages) + row * run.head_dim +
             place.column;
  if constexpr (is_e4m3<KV>) {
    const float factor = 1.0F / (is_key ? run.key_scale : run.value_scale);
    store_global(reinterpret_cast<uint2*>(to), pack_e4m3(x, factor));
  } else {
    store_global(reinterpret_cast<uint4*>(to), pack_elements<T>(x));
  }
}

template <class T, class KV, rope_bug bug = rope_bug::none>
__global__ void __launch_bounds__(rope_threads) rope_and_write(rope_kv_write_run run) {
  OCTAVO_SHARED(shared);
  auto* squares = reinterpret_cast<float*>(shared);  // [thread]
  float* elements = squares + rope_threads;          // [head of the block][head_dim]
  const rope_place place = place_of(run);
  const bool active = place.what != rope_place::none;
  float x[8] = {};
  if (active) load_elements<T>(run, place, x);
  float sum = 0;
#pragma unroll
  for (const float value : x) sum = fmaf(value, value, sum);
  store_shared(squares + threadIdx.x, sum);
  __syncthreads();
  if (active) {
    norm_elements(run, place, squares, x);
    auto* to = reinterpret_cast<float4*>(elements + place.first + place.column);
    store_shared(to, float4{x[0], x[1], x[2], x[3]});
    store_shared(to + 1, float4{x[4], x[5], x[6], x[7]});
  }
  if constexpr (bug != rope_bug::turn_without_barrier) __syncthreads();
  if (!active) return;
  const int position = load_global(run.positions + blockIdx.x);
  if (place.what != rope_place::value) {
    turn_elements(run.rope, position, place.column, elements + place.first, x);
  }
  if (place.what == rope_place::query) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * run.queries_out_stride +
                            static_cast<std::int64_t>(place.head) * run.head_dim + place.column;
    store_global(reinterpret_cast<uint4*>(static_cast<T*>(run.queries_out) + at),
                 pack_elements<T>(x));
  } else {
    write_to_page<T, KV, bug>(run, place, position, x);
  }
}

/// Blocks, threads and shared memory of a run.
inline launch_shape rope_launch_shape(const rope_kv_write_run& run) {
  const int heads = rope_threads / (run.head_dim / 8);
  const int all = run.heads + 2 * run.kv_heads;
  launch_shape shape;
  shape.grid =
      dim3(static_cast<unsigned>(run.rows), static_cast<unsigned>((all + heads - 1) / heads));
  shape.block = dim3(rope_threads);
  shape.shared_bytes =
      static_cast<std::size_t>(rope_threads + heads * run.head_dim) * sizeof(float);
  return shape;
}

}  // namespace octavo::gpu
