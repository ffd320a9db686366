// Attention over a paged KV cache: one sequence, one key-value head and the query
// heads that share it, for a run of tokens. Flash-style (Dao et al., arXiv
// 2205.14135): softmax in float32, never more than a segment of scores at a time.
//
//   write_kv(page, kv_head, slot, head_dim, k, v);      // every token first
//   attend(shape, work);
//
// Bits: positions are cut into segments of 256 at fixed multiples; a row (one token
// and query head) goes through its own positions in order within a segment, and
// segments are merged in order. So a row does not depend on which other rows are
// in the call, nor on how a prompt was chunked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/kernels/kernel_table.hpp"

namespace octavo::cpu {

/// One layer's share of a block of 16 tokens, fp16. Keys lie transposed, so that a
/// vector holds one dimension of many tokens: keys[kv_head][dimension][token],
/// values[kv_head][token][dimension]. Both have kv_heads * 16 * head_dim elements.
///
/// Where scales are given, int8 codes lie there instead, in the same order, and a
/// number is its code times the scale of its token and head: scales[kv_head][token],
/// fp16. All pages of a call are of one kind.
struct kv_page {
  std::uint16_t* keys = nullptr;
  std::uint16_t* values = nullptr;
  std::uint16_t* key_scales = nullptr;
  std::uint16_t* value_scales = nullptr;
};

/// Puts one token's key and value of one head into slot 0 .. 15 of a page. Codes are
/// within -127 .. 127, each off by half a scale at most, where scale = largest
/// magnitude / 127 in fp16; a vector that is not finite gets the scale NaN.
void write_kv(const kv_page& page, std::size_t kv_head, std::size_t slot, std::size_t head_dim,
              const float* key, const float* value);

/// What all calls of a layer share.
struct attention_shape {
  std::size_t head_dim = 0;  ///< a multiple of 8
  /// Query heads to each key-value head.
  std::size_t group = 1;
  /// Factor of q·k.
  float scale = 1;
  /// A token sees its last `window` tokens, itself included; 0 = all.
  std::size_t window = 0;
  /// Scores s become cap * tanh(s / cap); 0 = they do not.
  float soft_cap = 0;
};

/// Throws input_error naming the head size, where no kernel takes it.
void check_attention_shape(const attention_shape& shape);

struct attention_work {
  /// q[token * q_stride + head * head_dim + i], head within the group.
  const float* q = nullptr;
  std::size_t q_stride = 0;
  std::size_t first_position = 0;
  std::size_t tokens = 0;
  /// pages[i] holds positions 16 (first_page + i) … + 15. Those in the windows of
  /// the tokens are read, up to each token's own position, and no others.
  const kv_page* pages = nullptr;
  std::size_t first_page = 0;
  std::size_t kv_head = 0;
  float* out = nullptr;  ///< laid out as q
  std::size_t out_stride = 0;
};

void attend(const attention_shape& shape, const attention_work& work,
            const kernel_table& kernels = active_kernels());

}  // namespace octavo::cpu
