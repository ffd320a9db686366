// Plans paged attention for one step on the host: cuts it into work items of about
// equal KV bytes that fill the device, before any layer runs.
//
//   attention_planner planner(shape, limits);               // once per kind of layer
//   pinned_array<std::byte> host(planner.capacity().bytes());
//   auto counts = planner.plan(sequences, {host.data(), host.size()});   // each step
//
// A step's plan serves all layers of its kind (full, or sliding with one window).
// Sizes depend on the limits alone, so a captured graph can be fed new plans at the
// same address. The idea of a plan apart from its runs is FlashInfer's (Ye et al.,
// arXiv 2501.01005); splitting the keys is Flash-Decoding's.
//
// Query heads that share a key-value head are packed: packed row p of a sequence is
// token p / group, head p % group of the group. A tile is a run of packed rows that
// reads keys and values together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/types.hpp"

namespace octavo::gpu {

/// What all steps of a layer share. Heads are those of one device.
struct attention_shape {
  int heads = 0;
  int kv_heads = 0;
  /// 16, 32, 64, 80, 96, 128 or 256.
  int head_dim = 0;
  /// float16 or bfloat16: queries and outputs.
  dtype type = dtype::bfloat16;
  /// The same as `type`, or float8_e4m3.
  dtype kv_type = dtype::bfloat16;
  /// A token sees its last `window` tokens, itself included; 0 = all.
  int window = 0;
  /// A row's bits depend on its own sequence alone: not on its company, nor on how a
  /// prompt was cut into chunks. Slower for prompts.
  bool batch_invariant = false;

  [[nodiscard]] int group() const { return heads / kv_heads; }
};

/// Throws input_error naming the field that no kernel takes.
void check_shape(const attention_shape& shape);

/// Bounds of a step, and the device that it is planned for.
struct attention_limits {
  int sequences_max = 0;
  /// Tokens of all sequences of a step.
  int rows_max = 0;
  int multiprocessors = 0;
};

/// A sequence's part in a step: `rows` tokens from `first_position` on. Keys and
/// values of all positions up to the last of them are in its pages.
struct attention_sequence {
  int first_row = 0;  ///< its first row in queries and outputs
  int rows = 0;
  int first_position = 0;
  int table = 0;        ///< index of its first page in the array of all block tables
  int first_block = 0;  ///< that page holds positions 16 * first_block and on
};

/// A tile and a range of its keys: what one block of threads does for one kv head.
struct attention_item {
  std::int32_t first_row = 0;       // of the sequence
  std::int32_t first_position = 0;  // of the sequence's first row
  std::int32_t first_packed = 0;    // of the tile
  std::int32_t packed = 0;          // rows of the tile; 0 = nothing to do
  std::int32_t kv_begin = 0;        // positions [kv_begin, kv_end)
  std::int32_t kv_end = 0;
  std::int32_t table = 0;     // index of the page of position 0, may lie before the array
  std::int32_t partial = -1;  // its first row among the partial results; -1 = none, final
};

/// Partial results of one tile that are to be merged, in order of their keys.
struct merge_item {
  std::int32_t first_row = 0;
  std::int32_t first_packed = 0;
  std::int32_t packed = 0;
  std::int32_t partial = 0;  // split s begins at row partial + s * packed
  std::int32_t splits = 0;   // 0 = nothing to do
  std::int32_t unused[3] = {};
};

/// How many of each a plan has: narrow items have at most 16 packed rows, wide ones 64.
struct plan_counts {
  int narrow = 0;
  int wide = 0;
  int merges = 0;
};

/// The fixed sizes of a planner's plans.
struct plan_capacity : plan_counts {
  /// Rows of partial results, for each kv head.
  int partial_rows = 0;

  /// Bytes of a plan, on the host and on the device.
  [[nodiscard]] std::size_t bytes() const;
  /// Offsets in a plan; narrow items are at 0.
  [[nodiscard]] std::size_t wide_offset() const;
  [[nodiscard]] std::size_t merges_offset() const;
};

/// Packed rows of a tile of each kind.
inline constexpr int narrow_rows = 16;
inline constexpr int wide_rows = 64;
/// Where batch-invariant attention cuts keys, whatever the batch: at multiples of it.
inline constexpr int segment_tokens = 512;

/// Do CUDA cores rather than tensor cores take single tokens? They do where a group
/// is too small to fill a matrix product, with the usual head sizes (64 and 128).
[[nodiscard]] bool uses_vector_kernel(const attention_shape& shape);

/// Bytes of partial results on the device; layers may share them.
[[nodiscard]] std::size_t workspace_bytes(const attention_shape& shape,
                                          const plan_capacity& capacity);

class attention_planner {
 public:
  /// Throws input_error naming the field that cannot be used.
  attention_planner(const attention_shape& shape, const attention_limits& limits);

  [[nodiscard]] const plan_capacity& capacity() const { return capacity_; }

  /// Writes the plan of a step: all capacity().bytes(), unused entries empty. Throws
  /// input_error naming the sequence and the field that breaks a limit, or a window
  /// that reaches before the sequence's first block.
  plan_counts plan(std::span<const attention_sequence> sequences, std::span<std::byte> out);

 private:
  struct tile {
    attention_item whole;
    int pieces = 1;
  };

  void check(std::span<const attention_sequence> sequences) const;
  void cut_into_tiles(const attention_sequence& sequence);
  /// Tiles come longest first.
  void choose_pieces(std::vector<tile>& tiles, int rows_of_tile) const;
  void choose_segments(std::vector<tile>& tiles);
  void add_items(const tile& t, std::vector<attention_item>& items);

  attention_shape shape_;
  attention_limits limits_;
  plan_capacity capacity_;
  std::vector<tile> narrow_tiles_, wide_tiles_;
  std::vector<attention_item> narrow_, wide_;
  std::vector<merge_item> merges_;
  int partial_rows_ = 0;
};

}  // namespace octavo::gpu
