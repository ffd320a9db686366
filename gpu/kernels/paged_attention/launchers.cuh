// Chooses kernels of paged attention by their types and head sizes.
#pragma once

#include <type_traits>

#include "core/error.hpp"
#include "gpu/kernels/paged_attention/arguments.cuh"
#include "gpu/kernels/paged_attention/paged_attention.hpp"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {

void launch_narrow(const paged_attention_run& run, stream& s);
void launch_wide(const paged_attention_run& run, stream& s);
void launch_vector(const paged_attention_run& run, stream& s);

template <class T>
struct type_tag {
  using type = T;
};

/// Calls body(type_tag<T>, type_tag<KV>).
template <class Body>
void with_types(const attention_shape& shape, Body&& body) {
  const auto with_kv = [&](auto type) {
    if (shape.kv_type == dtype::float8_e4m3) {
      body(type, type_tag<__nv_fp8_e4m3>{});
    } else {
      body(type, type);
    }
  };
  if (shape.type == dtype::float16) {
    with_kv(type_tag<__half>{});
  } else {
    with_kv(type_tag<__nv_bfloat16>{});
  }
}

/// Calls body(std::integral_constant<int, n>) for the n among `values` that is `given`.
template <int... values, class Body>
void with_number(int given, Body&& body) {
  const bool found =
      ((given == values && (body(std::integral_constant<int, values>{}), true)) || ...);
  if (!found) throw input_error("paged attention: no kernel for " + std::to_string(given));
}

template <class Body>
void with_head_dim(const attention_shape& shape, Body&& body) {
  with_number<16, 32, 64, 80, 96, 128, 256>(shape.head_dim, body);
}

inline float* partial_out_of(const paged_attention_run& run) {
  return static_cast<float*>(run.workspace);
}

inline float2* partial_sums_of(const paged_attention_run& run) {
  const auto rows = static_cast<std::size_t>(run.capacity.partial_rows) *
                    static_cast<std::size_t>(run.shape.kv_heads);
  return reinterpret_cast<float2*>(partial_out_of(run) +
                                   rows * static_cast<std::size_t>(run.shape.head_dim));
}

template <class T, class KV>
attention_arguments<T, KV> arguments_of(const paged_attention_run& run, std::size_t items_offset) {
  constexpr float log2_e = 1.44269504088896340736F;
  attention_arguments<T, KV> a;
  a.items = reinterpret_cast<const attention_item*>(run.plan + items_offset);
  a.tables = run.tables;
  a.queries = static_cast<const T*>(run.queries);
  a.query_stride = run.query_stride;
  a.keys = static_cast<const unsigned char*>(run.keys);
  a.values = static_cast<const unsigned char*>(run.values);
  a.out = static_cast<T*>(run.out);
  a.out_stride = run.out_stride;
  a.partial_out = partial_out_of(run);
  a.partial_sums = partial_sums_of(run);
  a.group = run.shape.group();
  a.window = run.shape.window;
  a.scale = run.scale * run.key_scale * log2_e;
  a.soft_cap = run.soft_cap * log2_e;
  a.value_scale = run.value_scale;
  a.segment_tokens = run.shape.batch_invariant ? segment_tokens : 0;
  return a;
}

/// One block for each of `items` items and each kv head.
template <class... P, class A>
void launch_items(const paged_attention_run& run, stream& s, int items, int threads, int bytes,
                  void (*kernel)(P...), const A& arguments) {
  launch_shape shape;
  shape.grid = dim3(static_cast<unsigned>(items), static_cast<unsigned>(run.shape.kv_heads));
  shape.block = dim3(static_cast<unsigned>(threads));
  shape.shared_bytes = static_cast<std::size_t>(bytes);
  launch(s, shape, kernel, arguments);
}

}  // namespace octavo::gpu
