// Paged attention for prompts: tiles of up to 64 packed rows, 16 to a warp, which
// share keys and values as in FlashAttention-2 (Dao, arXiv 2307.08691).
#pragma once

#include "gpu/kernels/paged_attention/pages.cuh"

namespace octavo::gpu {

template <class T_, class KV_, int dim_, attention_bug bug_ = attention_bug::none>
struct wide_config {
  using T = T_;
  using KV = KV_;
  static constexpr int dim = dim_;
  static constexpr attention_bug bug = bug_;
  static constexpr int tile_rows = wide_rows;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int pages = dim > 128 ? 2 : 4;  // that all warps take at a time
  static constexpr int stages = 2;
  static constexpr bool query_in_registers = dim <= 64;
};

template <class C>
struct wide_layout {
  static constexpr int keys_bytes = C::pages * page_bytes<C>;
  static constexpr int query = 0;
  static constexpr int ring = query + wide_rows * C::dim * 2;
  static constexpr int bytes = ring + C::stages * 2 * keys_bytes;
};

/// Steps of C::pages pages through the keys of an item, by the whole block.
template <class C>
struct block_pages {
  static constexpr int tokens = C::pages * kv_page_tokens;
  const attention_item& item;
  const attention_arguments<typename C::T, typename C::KV>& arguments;
  unsigned char* ring;
  int first;  // page
  int count;  // pages
  page_ids ids;

  __device__ block_pages(const attention_item& item_,
                         const attention_arguments<typename C::T, typename C::KV>& arguments_,
                         unsigned char* ring_)
      : item(item_),
        arguments(arguments_),
        ring(ring_),
        first(item.kv_begin / kv_page_tokens),
        count((item.kv_end + kv_page_tokens - 1) / kv_page_tokens - first),
        ids(arguments.tables, item.table, first, 1, count) {}

  __device__ int steps() const { return (count + C::pages - 1) / C::pages; }

  __device__ unsigned char* keys(int step) {
    return ring + step % C::stages * 2 * wide_layout<C>::keys_bytes;
  }
  __device__ unsigned char* values(int step) { return keys(step) + wide_layout<C>::keys_bytes; }

  __device__ int position(int step) const { return (first + step * C::pages) * kv_page_tokens; }

  __device__ void fetch(int step) {
    for (int page = 0; page < C::pages && step < steps(); ++page) {
      const int i = step * C::pages + page;
      // Beyond the last page all tokens lie outside of the item, and its id is not used.
      const int id = i < count ? ids.at(i) : 0;
      fetch_page<C>(keys(step) + page * page_bytes<C>, values(step) + page * page_bytes<C>,
                    first + i, id, item, arguments, static_cast<int>(threadIdx.x), C::threads);
    }
    cp_async_commit();
  }
};

/// Writes a warp's rows, which begin at `first_row` of the tile.
template <class C>
__device__ void write_rows(warp_rows<C>& rows, int first_row, const attention_item& item,
                           const attention_arguments<typename C::T, typename C::KV>& a) {
  using T = typename C::T;
  rows.add_up();
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + lane / 4 + 8 * half;
    if (row >= item.packed) continue;
    const bool partial = item.partial >= 0;
    const float f = partial ? 1.0F : final_factor(rows.sum[half], a.value_scale);
    const long long slot = static_cast<long long>(item.partial + row) * gridDim.y + blockIdx.y;
    const long long at = head_offset(item, row, a.group, C::dim, a.out_stride);
    if (partial && lane % 4 == 0) {
      store_global(a.partial_sums + slot, float2{rows.maximum[half], rows.sum[half]});
    }
    // Of two tiles, four columns: in pairs that lie together.
#pragma unroll
    for (int tile = 0; tile < C::dim / 8; tile += 2) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        constexpr bool bytes = is_e4m3<typename C::KV>;
        const int column = warp_rows<C>::column(bytes ? tile : tile + i, bytes ? i : 0);
        const float low = rows.out[bytes ? tile : tile + i][2 * half + (bytes ? i : 0)] * f;
        const float high = rows.out[tile + (bytes ? 1 : i)][2 * half + (bytes ? i : 1)] * f;
        if (partial) {
          store_global(reinterpret_cast<float2*>(a.partial_out + slot * C::dim + column),
                       float2{low, high});
        } else {
          store_global(reinterpret_cast<uint32_t*>(a.out + at + column), pack<T>(low, high));
        }
      }
    }
  }
}

template <class C>
__global__ void __launch_bounds__(C::threads)
    attend_wide(attention_arguments<typename C::T, typename C::KV> a) {
  using layout = wide_layout<C>;
  OCTAVO_SHARED(shared);
  const attention_item item = load_item(a.items + blockIdx.x);
  if (item.packed == 0) return;
  block_pages<C> pages(item, a, shared + layout::ring);
  load_queries<C>(shared + layout::query, wide_rows, item, a);
  pages.fetch(0);
  __syncthreads();
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  warp_rows<C> rows;
  rows.take_queries(shared + layout::query, warp_row);
  const int row = warp_row + static_cast<int>(threadIdx.x) % 32 / 4;
  const position_range seen[2] = {keys_seen(item, row, a.group, a.window),
                                  keys_seen(item, row + 8, a.group, a.window)};
  // The oldest and newest key of the warp's rows.
  const int last_row = min(warp_row + 15, item.packed - 1);
  const int oldest = keys_seen(item, warp_row, a.group, a.window).begin;
  const int newest = warp_row <= last_row ? keys_seen(item, last_row, a.group, a.window).end : 0;
  for (int step = 0; step < pages.steps(); ++step) {
    if constexpr (C::bug != attention_bug::read_without_wait) cp_async_wait<0>();
    if constexpr (C::bug != attention_bug::merge_without_barrier) __syncthreads();
    pages.fetch(step + 1);  // into the slot that all warps are done with
    const int position = pages.position(step);
    if (position < newest && position + block_pages<C>::tokens > oldest) {
      attend_pages<C>(rows, pages.keys(step), pages.values(step), position, seen, a);
    }
  }
  cp_async_wait<0>();
  write_rows<C>(rows, warp_row, item, a);
}

}  // namespace octavo::gpu
