// What every kernel of paged attention is given, and what they share.
#pragma once

#include "gpu/kernels/paged_attention/elements.cuh"
#include "gpu/kernels/paged_attention/plan.hpp"

namespace octavo::gpu {

/// Faults that tests seed, to see that they are found.
enum class attention_bug { none, page_off_by_one, merge_without_barrier, read_without_wait };

/// Grid: (items, kv_heads).
template <class T, class KV>
struct attention_arguments {
  const attention_item* items = nullptr;
  const int32_t* tables = nullptr;
  const T* queries = nullptr;  // [row][query_stride]: heads of head_dim
  long long query_stride = 0;
  const unsigned char* keys = nullptr;  // [page][kv_head][16][head_dim] of KV
  const unsigned char* values = nullptr;
  T* out = nullptr;  // [row][out_stride]
  long long out_stride = 0;
  float* partial_out = nullptr;    // [partial row][kv_head][head_dim]
  float2* partial_sums = nullptr;  // [partial row][kv_head]: maximum, sum
  int group = 1;
  int window = 0;          // 0 = none
  float scale = 1;         // of q·k, in powers of two
  float soft_cap = 0;      // in powers of two; 0 = none
  float value_scale = 1;   // of outputs
  int segment_tokens = 0;  // 0 = one segment
};

inline constexpr unsigned all_lanes = 0xffffffffU;

/// Each lane of the warp reads one word at most.
OCTAVO_DEVICE attention_item load_item(const attention_item* item) {
  const int lane = threadIdx.x % 32;
  const int32_t word = lane < 8 ? load_global(reinterpret_cast<const int32_t*>(item) + lane) : 0;
  const auto at = [&](int i) { return __shfl_sync(all_lanes, word, i); };
  attention_item out;
  out.first_row = at(0);
  out.first_position = at(1);
  out.first_packed = at(2);
  out.packed = at(3);
  out.kv_begin = at(4);
  out.kv_end = at(5);
  out.table = at(6);
  out.partial = at(7);
  return out;
}

/// The element of a [row][stride] array where a packed row's head begins.
OCTAVO_DEVICE long long head_offset(const attention_item& item, int packed_row, int group,
                                    int head_dim, long long stride) {
  const int packed = item.first_packed + packed_row;
  const int row = item.first_row + packed / group;
  const int head = static_cast<int>(blockIdx.y) * group + packed % group;
  return row * stride + static_cast<long long>(head) * head_dim;
}

/// Positions [begin, end).
struct position_range {
  int begin = 0;
  int end = 0;
};

/// The keys of the item that a packed row of its tile sees; none for a row beyond it.
OCTAVO_DEVICE position_range keys_seen(const attention_item& item, int packed_row, int group,
                                       int window) {
  if (packed_row >= item.packed) return {};
  const int position = item.first_position + (item.first_packed + packed_row) / group;
  const int oldest = window > 0 ? position - window + 1 : 0;
  return {max(item.kv_begin, oldest), min(item.kv_end, position + 1)};
}

/// Page ids of a run of pages `step` apart, read by a warp 32 at a time and handed out
/// in order.
class page_ids {
 public:
  __device__ page_ids(const int32_t* tables, int table, int first, int step, int count)
      : tables_(tables), first_(table + first), step_(step), count_(count) {}

  /// To be called by the whole warp, with 0, 1, ... in turn, below count.
  __device__ int at(int i) {
    const int lane = threadIdx.x % 32;
    if (i % 32 == 0 && i + lane < count_) ids_ = load_global(tables_ + first_ + (i + lane) * step_);
    return __shfl_sync(all_lanes, ids_, i % 32);
  }

 private:
  const int32_t* tables_;
  int first_, step_, count_;
  int ids_ = 0;
};

/// The result of some keys for one row: exponents are relative to the maximum.
struct row_sums {
  float maximum = -INFINITY;
  float sum = 0;
};

/// How the results of two runs of keys become one.
struct fold_factors {
  row_sums sums;
  float keep;  // of what was there
  float add;   // of what comes
};

/// A run without keys changes no bit of what was there.
OCTAVO_DEVICE fold_factors fold(const row_sums& former, const row_sums& next) {
  fold_factors out;
  out.sums.maximum = fmaxf(former.maximum, next.maximum);
  const float base = out.sums.maximum == -INFINITY ? 0.0F : out.sums.maximum;
  out.keep = former.maximum == out.sums.maximum ? 1.0F : exp2_approximate(former.maximum - base);
  out.add = next.maximum == out.sums.maximum ? 1.0F : exp2_approximate(next.maximum - base);
  out.sums.sum = fmaf(former.sum, out.keep, next.sum * out.add);
  return out;
}

OCTAVO_DEVICE float fold_output(float former, float next, const fold_factors& f) {
  return fmaf(former, f.keep, next * f.add);
}

/// What outputs are multiplied by at last.
OCTAVO_DEVICE float final_factor(float sum, float value_scale) {
  return sum > 0 ? value_scale / sum : 0.0F;
}

/// Score to exponent of two, capped softly where asked.
OCTAVO_DEVICE float exponent_of(float score, float scale, float soft_cap) {
  const float x = score * scale;
  return soft_cap > 0 ? soft_cap * tanhf(x / soft_cap) : x;
}

}  // namespace octavo::gpu
