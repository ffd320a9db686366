// Rotary position embedding of queries and keys, each head normed before where the
// model asks, and the write of keys and values into their pages, in one pass.
//
// Su et al., "RoFormer" (arXiv 2104.09864); norms of heads as in Qwen 3 and Gemma 3.
// All arithmetic is in fp32, and a row does not depend on others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// Which elements of a head turn together.
enum class rope_style {
  halves,      ///< i and i + pairs
  neighbours,  ///< 2 i and 2 i + 1
};

/// Angles of pairs, from tables or from frequencies; no pairs = nothing turns.
struct rope_source {
  /// Pairs of a head that turn: its first 2 * pairs elements.
  int pairs = 0;
  rope_style style = rope_style::halves;
  /// Device: [position][pairs], scaled as the model asks; null = from turns.
  const float* cosines = nullptr;
  const float* sines = nullptr;
  int table_positions = 0;
  /// Device: rope_turns() of the pairs' frequencies, and the factor of cosine and sine.
  const std::uint64_t* turns = nullptr;
  float magnitude = 1;
};

/// Frequencies (radians for each position) as fractions of a full turn in units of
/// 2^-64. A position times such a number is the angle, full turns dropped, so that
/// angles are as exact at position 1,000,000 as at 1.
[[nodiscard]] std::vector<std::uint64_t> rope_turns(std::span<const double> frequencies);

/// One layer's step. Pointers are to device memory, aligned to 16 bytes; strides count
/// elements and are multiples of 8.
struct rope_kv_write_run {
  dtype type = dtype::bfloat16;     // float16 or bfloat16: of queries, keys, values
  dtype kv_type = dtype::bfloat16;  // the same, or float8_e4m3: of pages
  int rows = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;               // a multiple of 16, at most 256
  const void* queries = nullptr;  // [row][query_stride]
  const void* keys = nullptr;     // [row][key_stride]
  const void* values = nullptr;   // [row][value_stride]
  std::int64_t query_stride = 0;
  std::int64_t key_stride = 0;
  std::int64_t value_stride = 0;
  void* queries_out = nullptr;  // [row][queries_out_stride]; may be `queries`
  std::int64_t queries_out_stride = 0;
  rope_source rope;
  /// [head_dim] factors of normed queries and keys; null = no norm.
  const float* query_norm = nullptr;
  const float* key_norm = nullptr;
  float norm_epsilon = 1e-6F;

  const std::int32_t* positions = nullptr;        // [row]
  const std::int32_t* sequence_of_row = nullptr;  // [row]; below 0: the row has no pages
  /// [sequence]: index in `tables` of the page of position 0; lies before a table whose
  /// first blocks are gone, and may be below 0: table - first_block of attention_sequence.
  const std::int32_t* sequence_tables = nullptr;
  const std::int32_t* tables = nullptr;  // page ids of all block tables
  void* key_pages = nullptr;             // [page][kv_head][16][head_dim]
  void* value_pages = nullptr;
  /// What stored e4m3 keys and values are multiplied by when they are read; larger
  /// numbers than 448 times it are clipped. 1 for other types.
  float key_scale = 1;
  float value_scale = 1;
};

/// Queues a layer's step. Throws input_error naming the field that cannot be used.
void rope_kv_write(const rope_kv_write_run& run, stream& s);

}  // namespace octavo::gpu
