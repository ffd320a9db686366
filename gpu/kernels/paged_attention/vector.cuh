// Paged attention of single tokens on CUDA cores, for groups of 1 to 3 heads, which
// would leave most of a matrix product empty.
//
// Warps take pages in turn. A token's key is read by a team of lanes, 16 bytes each,
// straight into registers; teams keep results of their own until the end.
#pragma once

#include "gpu/kernels/paged_attention/combine.cuh"

namespace octavo::gpu {

template <class T_, class KV_, int dim_, int group_, attention_bug bug_ = attention_bug::none>
struct vector_config {
  using T = T_;
  using KV = KV_;
  static constexpr int dim = dim_;
  static constexpr int group = group_;
  static constexpr attention_bug bug = bug_;
  static constexpr int tile_rows = group;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  /// Elements of a lane, lanes of a team, tokens that teams take side by side.
  static constexpr int elements = 16 / static_cast<int>(sizeof(KV));
  static constexpr int lanes = dim / elements;
  static constexpr int teams = 32 / lanes < kv_page_tokens ? 32 / lanes : kv_page_tokens;
  /// Tokens that a team takes at a time, and how often for a page.
  static constexpr int batch = kv_page_tokens / teams < 8 ? kv_page_tokens / teams : 8;
  static constexpr int batches = kv_page_tokens / (teams * batch);
};

template <class C>
struct vector_layout {
  static constexpr int combine = (combine_layout<C>::outputs_bytes + 15) / 16 * 16;
  static constexpr int bytes = combine + combine_layout<C>::bytes;
};

/// A team's results; the lane has C::elements columns of each head.
template <class C>
struct team_rows {
  float query[C::group][C::elements];
  float out[C::group][C::elements] = {};
  float maximum[C::group];
  float sum[C::group] = {};

  __device__ void take_queries(const attention_item& item,
                               const attention_arguments<typename C::T, typename C::KV>& a) {
    const int lane = static_cast<int>(threadIdx.x) % C::lanes;
#pragma unroll
    for (int g = 0; g < C::group; ++g) {
      maximum[g] = -INFINITY;
      const long long at = head_offset(item, g, C::group, C::dim, a.query_stride);
      const auto* from = a.queries + at + lane * C::elements;
#pragma unroll
      for (int i = 0; i < C::elements; i += 8) {
        float part[8];
        to_floats<typename C::T, typename C::T>(
            load_global(reinterpret_cast<const uint4*>(from + i)), part);
#pragma unroll
        for (int j = 0; j < 8; ++j) query[g][i + j] = part[j];
      }
    }
  }

  /// Adds a run of tokens whose scores the team knows; -infinity where not seen.
  __device__ __forceinline__ void weigh(float (&scores)[C::group][C::batch]) {
#pragma unroll
    for (int g = 0; g < C::group; ++g) {
      float top = maximum[g];
#pragma unroll
      for (int b = 0; b < C::batch; ++b) top = fmaxf(top, scores[g][b]);
      const float keep = top == maximum[g] ? 1.0F : exp2_approximate(maximum[g] - top);
      const float base = top == -INFINITY ? 0.0F : top;
      maximum[g] = top;
      sum[g] *= keep;
#pragma unroll
      for (int b = 0; b < C::batch; ++b) {
        scores[g][b] = exp2_approximate(scores[g][b] - base);
        sum[g] += scores[g][b];
      }
#pragma unroll
      for (float& value : out[g]) value *= keep;
    }
  }

  /// Joins the teams of a warp; all have the result.
  __device__ void join_teams() {
#pragma unroll
    for (int g = 0; g < C::group; ++g) {
#pragma unroll
      for (int lanes = C::lanes; lanes < 32; lanes *= 2) {
        const float other = __shfl_xor_sync(all_lanes, maximum[g], lanes);
        const float top = fmaxf(maximum[g], other);
        const float base = top == -INFINITY ? 0.0F : top;
        const float mine = exp2_approximate(maximum[g] - base);
        const float theirs = exp2_approximate(other - base);
        maximum[g] = top;
        sum[g] = fmaf(sum[g], mine, __shfl_xor_sync(all_lanes, sum[g], lanes) * theirs);
#pragma unroll
        for (float& value : out[g]) {
          value = fmaf(value, mine, __shfl_xor_sync(all_lanes, value, lanes) * theirs);
        }
      }
    }
  }
};

/// Scores of a batch of tokens, `step` apart from `position` on, from their keys.
template <class C>
__device__ __forceinline__ void score_tokens(
    float (&scores)[C::group][C::batch], const uint4 (&keys)[C::batch], const team_rows<C>& rows,
    int position, const position_range& seen,
    const attention_arguments<typename C::T, typename C::KV>& a) {
#pragma unroll
  for (int b = 0; b < C::batch; ++b) {
    float key[C::elements];
    to_floats<typename C::T, typename C::KV>(keys[b], key);
    const int at = position + b * C::teams;
    const bool visible = at >= seen.begin && at < seen.end;
#pragma unroll
    for (int g = 0; g < C::group; ++g) {
      float score = 0;
#pragma unroll
      for (int i = 0; i < C::elements; ++i) score = fmaf(rows.query[g][i], key[i], score);
#pragma unroll
      for (int lanes = 1; lanes < C::lanes; lanes *= 2) {
        score += __shfl_xor_sync(all_lanes, score, lanes);
      }
      scores[g][b] = visible ? exponent_of(score, a.scale, a.soft_cap) : -INFINITY;
    }
  }
}

/// One page: the team's tokens of it in batches.
template <class C>
__device__ __forceinline__ void attend_page(
    team_rows<C>& rows, int page, int id, const position_range& seen,
    const attention_arguments<typename C::T, typename C::KV>& a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int team = lane / C::lanes;
  const long long source = (static_cast<long long>(id) * gridDim.y + blockIdx.y) * page_bytes<C>;
#pragma unroll
  for (int batch = 0; batch < C::batches; ++batch) {
    const int first = batch * C::batch * C::teams + team;
    const int position = page * kv_page_tokens + first;
    uint4 keys[C::batch];
    uint4 values[C::batch];
#pragma unroll
    for (int b = 0; b < C::batch; ++b) {
      // What lies outside of the item may be no number.
      const int at = position + b * C::teams;
      const bool there = team < C::teams && at >= seen.begin && at < seen.end;
      const long long offset =
          source + 16LL * ((first + b * C::teams) * C::lanes + lane % C::lanes);
      keys[b] =
          there ? load_global_streaming(reinterpret_cast<const uint4*>(a.keys + offset)) : uint4{};
      values[b] = there ? load_global_streaming(reinterpret_cast<const uint4*>(a.values + offset))
                        : uint4{};
    }
    const position_range own = team < C::teams ? seen : position_range{};
    float scores[C::group][C::batch];
    score_tokens<C>(scores, keys, rows, position, own, a);
    rows.weigh(scores);
#pragma unroll
    for (int b = 0; b < C::batch; ++b) {
      float value[C::elements];
      to_floats<typename C::T, typename C::KV>(values[b], value);
#pragma unroll
      for (int g = 0; g < C::group; ++g) {
#pragma unroll
        for (int i = 0; i < C::elements; ++i) {
          rows.out[g][i] = fmaf(scores[g][b], value[i], rows.out[g][i]);
        }
      }
    }
  }
}

template <class C>
__global__ void __launch_bounds__(C::threads)
    attend_vector(attention_arguments<typename C::T, typename C::KV> a) {
  using layout = vector_layout<C>;
  OCTAVO_SHARED(shared);
  const attention_item item = load_item(a.items + blockIdx.x);
  if (item.packed == 0) return;
  block_combiner<C> combiner(shared, shared + layout::combine);
  combiner.reset();
  __syncthreads();
  team_rows<C> rows;
  rows.take_queries(item, a);
  const position_range seen = keys_seen(item, 0, a.group, a.window);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first = item.kv_begin / kv_page_tokens + warp;
  const int last = (item.kv_end + kv_page_tokens - 1) / kv_page_tokens;
  const int count = first < last ? (last - first + C::warps - 1) / C::warps : 0;
  page_ids ids(a.tables, item.table, first, C::warps, count);
  for (int i = 0; i < count; ++i) {
    int id = ids.at(i);
    if constexpr (C::bug == attention_bug::page_off_by_one) id = id > 0 ? id - 1 : id;
    attend_page<C>(rows, first + i * C::warps, id, seen, a);
  }
  rows.join_teams();
  if (lane < C::lanes) {
#pragma unroll
    for (int g = 0; g < C::group; ++g) {
      if (lane == 0) combiner.put_sums(warp, g, rows.maximum[g], rows.sum[g]);
#pragma unroll
      for (int i = 0; i < C::elements; i += 4) {
        float* to = combiner.output(warp, g) + lane * C::elements + i;
        const float* four = rows.out[g] + i;
        store_shared(reinterpret_cast<float4*>(to), float4{four[0], four[1], four[2], four[3]});
      }
    }
  }
  combiner.combine(item.packed);
  combiner.write(item, a);
}

}  // namespace octavo::gpu
