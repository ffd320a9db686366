// Paged attention for tiles of up to 16 packed rows: decoding with groups of 4 heads
// and more, short chunks, and everything where batches must not matter.
//
// All warps have the same rows and take pages in turn, each through a ring of its own,
// so that no barrier of the block stands in their way until the end of a run of keys.
#pragma once

#include "gpu/kernels/paged_attention/combine.cuh"

namespace octavo::gpu {

template <class T_, class KV_, int dim_, attention_bug bug_ = attention_bug::none>
struct narrow_config {
  using T = T_;
  using KV = KV_;
  static constexpr int dim = dim_;
  static constexpr attention_bug bug = bug_;
  static constexpr int tile_rows = narrow_rows;
  static constexpr int warps = dim > 128 ? 2 : 4;
  static constexpr int threads = 32 * warps;
  static constexpr int pages = 1;  // that a warp takes at a time
  static constexpr int stages = is_e4m3<KV> ? 4 : 2;
  static constexpr bool query_in_registers = dim <= 128;
};

template <class C>
struct narrow_layout {
  static constexpr int ring_bytes = C::stages * 2 * page_bytes<C>;  // of a warp
  static constexpr int ring = 0;
  static constexpr int query = C::warps * ring_bytes;
  static constexpr int combine = query + narrow_rows * C::dim * 2;
  static constexpr int bytes = combine + combine_layout<C>::bytes;
  static_assert(combine_layout<C>::outputs_bytes <= query);
};

/// One warp's pages of a run of keys.
template <class C>
struct warp_pages {
  const attention_item& item;
  const attention_arguments<typename C::T, typename C::KV>& arguments;
  unsigned char* ring;
  int first;  // page; the others are C::warps apart
  int count;
  page_ids ids;

  __device__ warp_pages(const attention_item& item_,
                        const attention_arguments<typename C::T, typename C::KV>& arguments_,
                        unsigned char* ring_, int begin, int end)
      : item(item_),
        arguments(arguments_),
        ring(ring_),
        first(first_of_warp(begin)),
        count(count_from(first, end)),
        ids(arguments.tables, item.table, first, C::warps, count) {}

  __device__ static int first_of_warp(int begin) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int page = begin / kv_page_tokens;
    // Pages belong to warps by their number alone, wherever the run begins.
    return page + (warp + C::warps - page % C::warps) % C::warps;
  }
  __device__ static int count_from(int first, int end) {
    const int pages = (end + kv_page_tokens - 1) / kv_page_tokens;
    return first < pages ? (pages - first + C::warps - 1) / C::warps : 0;
  }

  __device__ unsigned char* slot(int i) { return ring + i % C::stages * 2 * page_bytes<C>; }

  __device__ void fetch(int i) {
    if (i < count) {
      int id = ids.at(i);
      if constexpr (C::bug == attention_bug::page_off_by_one) id = id > 0 ? id - 1 : id;
      fetch_page<C>(slot(i), slot(i) + page_bytes<C>, first + i * C::warps, id, item, arguments,
                    static_cast<int>(threadIdx.x) % 32, 32);
    }
    cp_async_commit();
  }

  __device__ void attend(warp_rows<C>& rows, const position_range (&seen)[2]) {
    for (int i = 0; i < C::stages - 1; ++i) fetch(i);
    for (int i = 0; i < count; ++i) {
      fetch(i + C::stages - 1);
      if constexpr (C::bug != attention_bug::read_without_wait) cp_async_wait<C::stages - 1>();
      __syncwarp();
      attend_pages<C>(rows, slot(i), slot(i) + page_bytes<C>,
                      (first + i * C::warps) * kv_page_tokens, seen, arguments);
      __syncwarp();  // before the slot is filled again
    }
    cp_async_wait<0>();
  }
};

template <class C>
__device__ void put_rows(block_combiner<C>& combiner, warp_rows<C>& rows) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  rows.add_up();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    if (lane % 4 == 0) combiner.put_sums(warp, row, rows.maximum[half], rows.sum[half]);
    float* to = combiner.output(warp, row);
#pragma unroll
    for (int tile = 0; tile < C::dim / 8; tile += 2) {
      const float* even = rows.out[tile] + 2 * half;
      const float* odd = rows.out[tile + 1] + 2 * half;
      float* pair = to + warp_rows<C>::column(tile, 0);
      if constexpr (is_e4m3<typename C::KV>) {
        store_shared(reinterpret_cast<float4*>(pair), float4{even[0], odd[0], even[1], odd[1]});
      } else {
        store_shared(reinterpret_cast<float2*>(pair), float2{even[0], even[1]});
        store_shared(reinterpret_cast<float2*>(pair + 8), float2{odd[0], odd[1]});
      }
    }
  }
}

template <class C>
__global__ void __launch_bounds__(C::threads)
    attend_narrow(attention_arguments<typename C::T, typename C::KV> a) {
  using layout = narrow_layout<C>;
  OCTAVO_SHARED(shared);
  const attention_item item = load_item(a.items + blockIdx.x);
  if (item.packed == 0) return;
  load_queries<C>(shared + layout::query, narrow_rows, item, a);
  block_combiner<C> combiner(shared + layout::ring, shared + layout::combine);
  combiner.reset();
  __syncthreads();
  warp_rows<C> rows;
  rows.take_queries(shared + layout::query, 0);
  const int row = static_cast<int>(threadIdx.x) % 32 / 4;
  const position_range seen[2] = {keys_seen(item, row, a.group, a.window),
                                  keys_seen(item, row + 8, a.group, a.window)};
  unsigned char* ring = shared + static_cast<int>(threadIdx.x) / 32 * layout::ring_bytes;
  for (int begin = item.kv_begin; begin < item.kv_end;) {
    const int run = a.segment_tokens;
    const int end = run > 0 ? min(item.kv_end, begin / run * run + run) : item.kv_end;
    rows.reset();
    warp_pages<C> pages(item, a, ring, begin, end);
    pages.attend(rows, seen);
    __syncthreads();  // the rings become room for results
    put_rows(combiner, rows);
    combiner.combine(item.packed);
    begin = end;
  }
  combiner.write(item, a);
}

}  // namespace octavo::gpu
