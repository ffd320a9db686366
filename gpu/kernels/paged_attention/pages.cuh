// Tiles of queries, keys and values in shared memory, and the matrix products on
// them: for each warp 16 packed rows of queries against pages of 16 tokens.
#pragma once

#include "gpu/kernels/paged_attention/arguments.cuh"

namespace octavo::gpu {

/// Rows of `row_bytes` in chunks of 16 bytes, arranged so that the same chunk of 8
/// rows in turn lies in different banks.
template <int row_bytes>
struct swizzled_rows {
  static_assert(row_bytes % 16 == 0);
  static constexpr int chunks = row_bytes / 16;
  /// Chunks that change places among themselves: a power of two that divides chunks.
  static constexpr int mixed = chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : chunks % 2 == 0 ? 2 : 1;

  /// Byte offset of a chunk.
  static OCTAVO_DEVICE int at(int row, int chunk) {
    return 16 * (row * chunks + (chunk ^ (row / (8 / mixed) % mixed)));
  }
};

template <class C>
using query_rows = swizzled_rows<C::dim * 2>;
template <class C>
using kv_rows = swizzled_rows<C::dim* static_cast<int>(sizeof(typename C::KV))>;

/// Bytes of a page's keys (or values) of one head.
template <class C>
inline constexpr int page_bytes = kv_page_tokens* C::dim* static_cast<int>(sizeof(typename C::KV));

/// Puts 8 query elements into their row, in the order of dimensions that keys have.
template <class C>
OCTAVO_DEVICE void place_query(unsigned char* tile, int row, int vector, const uint4& bits) {
  using rows = query_rows<C>;
  if constexpr (is_e4m3<typename C::KV>) {
    // Of each 16 dimensions, slots 2t, 2t+1, 2t+8, 2t+9 hold 4t, 4t+2, 4t+1, 4t+3.
    const auto even = [](uint32_t a, uint32_t b) { return (a & 0xffffU) | b << 16; };
    const auto odd = [](uint32_t a, uint32_t b) { return a >> 16 | (b & 0xffff0000U); };
    const int chunk = vector / 2 * 2;
    const int offset = vector % 2 * 8;
    const uint2 low{even(bits.x, bits.y), even(bits.z, bits.w)};
    const uint2 high{odd(bits.x, bits.y), odd(bits.z, bits.w)};
    store_shared(reinterpret_cast<uint2*>(tile + rows::at(row, chunk) + offset), low);
    store_shared(reinterpret_cast<uint2*>(tile + rows::at(row, chunk + 1) + offset), high);
  } else {
    store_shared(reinterpret_cast<uint4*>(tile + rows::at(row, vector)), bits);
  }
}

/// Loads `rows` packed rows, zeros beyond the tile. To be called by the whole block.
template <class C>
__device__ void load_queries(unsigned char* tile, int rows, const attention_item& item,
                             const attention_arguments<typename C::T, typename C::KV>& a) {
  constexpr int vectors = C::dim / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows * vectors; i += C::threads) {
    const int row = i / vectors;
    const int vector = i % vectors;
    uint4 bits{};
    if (row < item.packed) {
      const long long at = head_offset(item, row, a.group, C::dim, a.query_stride);
      bits = load_global(reinterpret_cast<const uint4*>(a.queries + at + vector * 8));
    }
    place_query<C>(tile, row, vector, bits);
  }
}

/// Starts the copy of one page's keys and values of the block's head, by `threads`
/// threads of which this one is `thread`. Tokens outside of the item become zeros, for
/// what lies there may be no number.
template <class C>
OCTAVO_DEVICE void fetch_page(unsigned char* keys, unsigned char* values, int page, int id,
                              const attention_item& item,
                              const attention_arguments<typename C::T, typename C::KV>& a,
                              int thread, int threads) {
  using rows = kv_rows<C>;
  const long long source = (static_cast<long long>(id) * gridDim.y + blockIdx.y) * page_bytes<C>;
#pragma unroll 4
  for (int i = thread; i < kv_page_tokens * rows::chunks; i += threads) {
    const int token = i / rows::chunks;
    const int to = rows::at(token, i % rows::chunks);
    const int position = page * kv_page_tokens + token;
    const bool there = position >= item.kv_begin && position < item.kv_end;
    cp_async16_or_zero(keys + to, a.keys + source + 16 * i, there);
    cp_async16_or_zero(values + to, a.values + source + 16 * i, there);
  }
}

/// A warp's rows: lane l has rows l / 4 and l / 4 + 8, and of each 8 columns two.
template <class C>
struct warp_rows {
  float out[C::dim / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};  // of this lane's columns
  uint32_t query[C::query_in_registers ? C::dim / 16 : 1][4];
  const unsigned char* query_tile;

  __device__ void reset() {
#pragma unroll
    for (auto& tile : out) {
#pragma unroll
      for (float& value : tile) value = 0;
    }
    maximum[0] = maximum[1] = -INFINITY;
    sum[0] = sum[1] = 0;
  }

  /// Takes the 16 rows of queries from `row` on of a tile.
  __device__ void take_queries(const unsigned char* tile, int row) {
    query_tile = tile + row * C::dim * 2;
    if constexpr (C::query_in_registers) {
#pragma unroll
      for (int k = 0; k < C::dim / 16; ++k) load_query(query[k], k);
    }
  }

  OCTAVO_DEVICE void load_query(uint32_t (&a)[4], int k) const {
    const int lane = threadIdx.x % 32;
    ldmatrix_x4(a, query_tile + query_rows<C>::at(lane % 16, 2 * k + lane / 16));
  }

  /// Sums over the lanes that share a row.
  __device__ void add_up() {
#pragma unroll
    for (float& value : sum) {
      value += __shfl_xor_sync(all_lanes, value, 1);
      value += __shfl_xor_sync(all_lanes, value, 2);
    }
  }

  /// Column of out[tile][i], for the first of two that are stored together.
  static OCTAVO_DEVICE int column(int tile, int i) {
    const int lane = threadIdx.x % 4;
    if constexpr (is_e4m3<typename C::KV>) {
      return tile / 2 * 16 + 4 * lane + 2 * (i % 2) + tile % 2;
    } else {
      return tile * 8 + 2 * lane + i % 2;
    }
  }
};

/// Operands of 16 dimensions of a page's 16 keys: tokens 0 to 7 and 8 to 15.
template <class C>
OCTAVO_DEVICE void load_keys(uint32_t (&b)[2][2], const unsigned char* page, int k) {
  using rows = kv_rows<C>;
  const int lane = threadIdx.x % 32;
  if constexpr (is_e4m3<typename C::KV>) {
    uint32_t bytes[2];
    ldmatrix_x2(bytes, page + rows::at(lane % 16, k));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      b[i][0] = decode_even<typename C::T>(bytes[i]);
      b[i][1] = decode_odd<typename C::T>(bytes[i]);
    }
  } else {
    uint32_t words[4];
    ldmatrix_x4(words, page + rows::at(lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
    b[0][0] = words[0];
    b[0][1] = words[1];
    b[1][0] = words[2];
    b[1][1] = words[3];
  }
}

/// Operands of 16 dimensions of a page's 16 values, as two tiles of 8 columns.
template <class C>
OCTAVO_DEVICE void load_values(uint32_t (&b)[2][2], const unsigned char* page, int k) {
  using rows = kv_rows<C>;
  const int lane = threadIdx.x % 32;
  if constexpr (is_e4m3<typename C::KV>) {
    uint32_t bytes[2];
    ldmatrix_x2_trans(bytes, page + rows::at(lane % 16, k));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      b[0][i] = decode_even<typename C::T>(bytes[i]);
      b[1][i] = decode_odd<typename C::T>(bytes[i]);
    }
  } else {
    uint32_t words[4];
    ldmatrix_x4_trans(words, page + rows::at(lane % 16, 2 * k + lane / 16));
    b[0][0] = words[0];
    b[0][1] = words[1];
    b[1][0] = words[2];
    b[1][1] = words[3];
  }
}

/// The scores of a warp's rows with the keys of some pages: tiles of 8 tokens.
template <class C>
struct page_scores {
  static constexpr int tiles = 2 * C::pages;
  float score[tiles][4] = {};

  OCTAVO_DEVICE void multiply(const warp_rows<C>& rows, const unsigned char* keys) {
#pragma unroll
    for (int k = 0; k < C::dim / 16; ++k) {
      uint32_t a[4];
      if constexpr (C::query_in_registers) {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = rows.query[k][i];
      } else {
        rows.load_query(a, k);
      }
#pragma unroll
      for (int page = 0; page < C::pages; ++page) {
        uint32_t b[2][2];
        load_keys<C>(b, keys + page * page_bytes<C>, k);
        mma_16x8x16<typename C::T>(score[2 * page], a, b[0]);
        mma_16x8x16<typename C::T>(score[2 * page + 1], a, b[1]);
      }
    }
  }

  /// Scales and caps scores, and hides those that a row does not see.
  OCTAVO_DEVICE void mask(int position, const position_range (&seen)[2], float scale,
                          float soft_cap) {
    const int lane = threadIdx.x % 4;
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = position + tile * 8 + 2 * lane + i % 2;
        const bool visible = at >= seen[i / 2].begin && at < seen[i / 2].end;
        score[tile][i] = visible ? exponent_of(score[tile][i], scale, soft_cap) : -INFINITY;
      }
    }
  }

  /// Makes weights of scores and brings what the rows have to the new maxima.
  OCTAVO_DEVICE void weigh(warp_rows<C>& rows) {
    float keep[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = rows.maximum[half];
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        top = fmaxf(top, fmaxf(score[tile][2 * half], score[tile][2 * half + 1]));
      }
      top = fmaxf(top, __shfl_xor_sync(all_lanes, top, 1));
      top = fmaxf(top, __shfl_xor_sync(all_lanes, top, 2));
      keep[half] = top == rows.maximum[half] ? 1.0F : exp2_approximate(rows.maximum[half] - top);
      rows.maximum[half] = top;
      const float base = top == -INFINITY ? 0.0F : top;
      float sum = 0;
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          score[tile][i] = exp2_approximate(score[tile][i] - base);
          sum += score[tile][i];
        }
      }
      rows.sum[half] = fmaf(rows.sum[half], keep[half], sum);
    }
    if (!__any_sync(all_lanes, keep[0] != 1.0F || keep[1] != 1.0F)) return;
#pragma unroll
    for (auto& tile : rows.out) {
#pragma unroll
      for (int i = 0; i < 4; ++i) tile[i] *= keep[i / 2];
    }
  }

  OCTAVO_DEVICE void add_values(warp_rows<C>& rows, const unsigned char* values) const {
    using T = typename C::T;
#pragma unroll
    for (int page = 0; page < C::pages; ++page) {
      const auto& low = score[2 * page];
      const auto& high = score[2 * page + 1];
      const uint32_t a[4] = {pack<T>(low[0], low[1]), pack<T>(low[2], low[3]),
                             pack<T>(high[0], high[1]), pack<T>(high[2], high[3])};
#pragma unroll
      for (int k = 0; k < C::dim / 16; ++k) {
        uint32_t b[2][2];
        load_values<C>(b, values + page * page_bytes<C>, k);
        mma_16x8x16<T>(rows.out[2 * k], a, b[0]);
        mma_16x8x16<T>(rows.out[2 * k + 1], a, b[1]);
      }
    }
  }
};

/// Adds C::pages pages from `position` on to a warp's rows.
template <class C>
OCTAVO_DEVICE void attend_pages(warp_rows<C>& rows, const unsigned char* keys,
                                const unsigned char* values, int position,
                                const position_range (&seen)[2],
                                const attention_arguments<typename C::T, typename C::KV>& a) {
  page_scores<C> scores;
  scores.multiply(rows, keys);
  scores.mask(position, seen, a.scale, a.soft_cap);
  scores.weigh(rows);
  scores.add_values(rows, values);
}

}  // namespace octavo::gpu
