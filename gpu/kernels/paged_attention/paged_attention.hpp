// Attention of a step over paged keys and values: decoding, prompts in chunks, and
// both together, causal, with a sliding window or a soft cap where the model asks.
//
//   attention_planner planner(shape, limits);                    // see plan.hpp
//   run.launch = planner.plan(sequences, pinned_plan);           // each step, then upload
//   paged_attention(run, stream);                                // each layer
//
// Keys and values of the step's own tokens must be in their pages already.
// Softmax in fp32, relative to a running maximum (Milakov and Gimelshein, arXiv
// 1805.02867); split keys merge by log-sum-exp as in Flash-Decoding.
#pragma once

#include "gpu/kernels/paged_attention/plan.hpp"
#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

/// One layer's attention in a step. All pointers are to device memory, aligned to 16
/// bytes, and may be the same for all replays of a captured graph.
struct paged_attention_run {
  attention_shape shape;
  /// The planner's, and what it returned for the step. A graph is captured with the
  /// counts of its largest step, at most the capacity: what a plan does not use ends
  /// at once.
  plan_capacity capacity;
  plan_counts launch;
  const std::byte* plan = nullptr;       // as written by the planner
  const std::int32_t* tables = nullptr;  // page ids of all block tables
  /// [row][query_stride], of which heads * head_dim are used; elements of shape.type.
  const void* queries = nullptr;
  std::int64_t query_stride = 0;
  /// The layer's pools: [page][kv_head][16][head_dim] of shape.kv_type.
  const void* keys = nullptr;
  const void* values = nullptr;
  void* out = nullptr;  // [row][out_stride], as queries; rows of no sequence stay as they are
  std::int64_t out_stride = 0;
  void* workspace = nullptr;  // workspace_bytes(shape, capacity)
  /// Factor of q·k, e.g. 1 / sqrt(head_dim).
  float scale = 1;
  /// Scores s become cap * tanh(s / cap); 0 = they do not.
  float soft_cap = 0;
  /// What stored e4m3 keys and values are multiplied by; 1 for others.
  float key_scale = 1;
  float value_scale = 1;
};

/// Queues the attention of a layer. Throws input_error naming the field that cannot
/// be used.
void paged_attention(const paged_attention_run& run, stream& s);

}  // namespace octavo::gpu
