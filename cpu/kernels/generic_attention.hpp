// The attention kernel, once for all instruction sets; V as in generic_matmul.hpp.
// Rows are handled up to four at a time, so that a key or value that was widened
// serves them all; every row's operations are the same alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/kernels/attention.hpp"
#include "cpu/kernels/generic_math.hpp"
#include "cpu/kernels/generic_matmul.hpp"

namespace octavo::cpu::generic {

inline constexpr std::size_t row_tile_max = 4;

/// A half-open range of positions.
struct span_of_positions {
  std::size_t begin;
  std::size_t end;
  [[nodiscard]] bool empty() const { return begin >= end; }
};

/// Up to four rows and what has been added up of them.
struct attention_rows {
  std::size_t count = 0;
  const float* q[row_tile_max];
  float* out[row_tile_max];
  span_of_positions visible[row_tile_max];
  /// Running maximum, sum of exponentials, and their weighted values.
  float max[row_tile_max];
  float sum[row_tile_max];
  bool started[row_tile_max];
  alignas(64) float values[row_tile_max][head_dim_max];
};

/// Scores and weighted values of one segment.
struct attention_segment {
  std::size_t first = 0;  ///< position of scores[.][0], a multiple of a segment
  span_of_positions visible[row_tile_max];
  alignas(64) float scores[row_tile_max][segment_tokens];
  float max[row_tile_max];
  float sum[row_tile_max];
  alignas(64) float values[row_tile_max][head_dim_max];
};

template <class V>
const kv_page& page_of(const attention_work& work, std::size_t position) {
  return work.pages[position / page_tokens - work.first_page];
}

/// The work's head in a page's keys or values (K or V elements are int8 codes or fp16).
template <class V, bool Codes>
const std::byte* head_of(const attention_shape& shape, const attention_work& work,
                         const std::uint16_t* elements) {
  return reinterpret_cast<const std::byte*>(elements) +
         (Codes ? 1 : 2) * work.kv_head * page_tokens * shape.head_dim;
}

/// The scales of a page's 16 tokens for the work's head.
template <class V>
const std::byte* scales_of(const attention_work& work, const std::uint16_t* scales) {
  return reinterpret_cast<const std::byte*>(scales + work.kv_head * page_tokens);
}

template <class V, bool Codes>
[[gnu::always_inline]] inline typename V::floats elements(const std::byte* p) {
  if constexpr (Codes) {
    return V::signed_bytes(p, 0);
  } else {
    return V::halves(p);
  }
}

/// Scores of R rows with the 16 tokens of one page: sums over dimensions in order,
/// which the scale of a token's codes multiplies at the end.
template <class V, int R, bool Codes>
[[gnu::always_inline]] inline void score_page(const attention_rows& rows, const std::byte* keys,
                                              const std::byte* scales, std::size_t head_dim,
                                              std::size_t at, attention_segment& s) {
  constexpr std::size_t size = Codes ? 1 : 2;
  constexpr int parts = static_cast<int>(page_tokens) / V::width;
  typename V::floats sums[R][parts];
  repeat<R>([&](auto r) { repeat<parts>([&](auto i) { sums[r][i] = V::set1(0.0F); }); });
  for (std::size_t d = 0; d < head_dim; ++d, keys += size * page_tokens) {
    typename V::floats k[parts];
    repeat<parts>([&](auto i) { k[i] = elements<V, Codes>(keys + size * V::width * i); });
    repeat<R>([&](auto r) {
      const auto q = V::set1(rows.q[r][d]);
      repeat<parts>([&](auto i) { sums[r][i] = V::fma(k[i], q, sums[r][i]); });
    });
  }
  if constexpr (Codes) {
    repeat<parts>([&](auto i) {
      const auto scale = V::halves(scales + 2 * V::width * i);
      repeat<R>([&](auto r) { sums[r][i] = V::mul(sums[r][i], scale); });
    });
  }
  repeat<R>([&](auto r) {
    repeat<parts>([&](auto i) { V::store(s.scores[r] + at + V::width * i, sums[r][i], V::width); });
  });
}

/// Turns a row's scores in [begin, end) of the segment, whole pages, into
/// exponentials of what they are above the maximum; those not visible into 0.
template <class V>
void soften(const attention_shape& shape, std::size_t begin, std::size_t end, std::size_t r,
            attention_segment& s) {
  const auto relative = [&](std::size_t position, std::size_t i) {
    return static_cast<int>(static_cast<std::ptrdiff_t>(position - s.first) -
                            static_cast<std::ptrdiff_t>(i));
  };
  auto largest = V::set1(-__builtin_inff());
  for (std::size_t i = begin; i < end; i += V::width) {
    auto v = V::mul(V::load_floats(s.scores[r] + i), V::set1(shape.scale));
    if (shape.soft_cap != 0) {
      const auto cap = V::set1(shape.soft_cap);
      v = V::mul(cap, hyperbolic_tangent<V>(V::div(v, cap)));
    }
    v = V::only_lanes(v, relative(s.visible[r].begin, i), relative(s.visible[r].end, i));
    V::store(s.scores[r] + i, v, V::width);
    largest = V::max(largest, v);
  }
  s.max[r] = max_of_lanes<V>(largest);
  const auto top = V::set1(s.max[r]);
  auto sum = V::set1(0.0F);
  for (std::size_t i = begin; i < end; i += V::width) {
    const auto e = exponential<V>(V::sub(V::load_floats(s.scores[r] + i), top));
    V::store(s.scores[r] + i, e, V::width);
    sum = V::add(sum, e);
  }
  s.sum[r] = sum_of_lanes<V>(sum);
}

/// Takes the scales of values' codes into row r's weights in [begin, end) of the
/// segment, whole pages.
template <class V>
void scale_weights(const attention_work& work, std::size_t begin, std::size_t end, std::size_t r,
                   attention_segment& s) {
  for (std::size_t page = begin; page < end; page += page_tokens) {
    const std::byte* scales = scales_of<V>(work, page_of<V>(work, s.first + page).value_scales);
    for (std::size_t i = 0; i < page_tokens; i += V::width) {
      float* weights = s.scores[r] + page + i;
      V::store(weights, V::mul(V::load_floats(weights), V::halves(scales + 2 * i)), V::width);
    }
  }
}

/// Adds weight x value over a run of positions, in order, to C vectors from
/// dimension d on, of R rows from `row` on.
template <class V, int R, int C, bool Codes>
[[gnu::always_inline]] inline void weigh_columns(const attention_shape& shape,
                                                 const attention_work& work, span_of_positions run,
                                                 std::size_t row, std::size_t d,
                                                 attention_segment& s) {
  constexpr std::size_t size = Codes ? 1 : 2;
  typename V::floats sums[R][C];
  repeat<R>([&](auto r) {
    repeat<C>([&](auto c) { sums[r][c] = V::load_floats(s.values[row + r] + d + V::width * c); });
  });
  for (std::size_t position = run.begin; position < run.end;) {
    const std::size_t page_end = (position / page_tokens + 1) * page_tokens;
    const std::size_t stop = page_end < run.end ? page_end : run.end;
    const std::byte* v = head_of<V, Codes>(shape, work, page_of<V>(work, position).values) +
                         size * (position % page_tokens * shape.head_dim + d);
    for (; position < stop; ++position, v += size * shape.head_dim) {
      typename V::floats value[C];
      repeat<C>([&](auto c) { value[c] = elements<V, Codes>(v + size * V::width * c); });
      repeat<R>([&](auto r) {
        const auto weight = V::set1(s.scores[row + r][position - s.first]);
        repeat<C>([&](auto c) { sums[r][c] = V::fma(value[c], weight, sums[r][c]); });
      });
    }
  }
  repeat<R>([&](auto r) {
    repeat<C>(
        [&](auto c) { V::store(s.values[row + r] + d + V::width * c, sums[r][c], V::width); });
  });
}

template <class V, int R, bool Codes>
[[gnu::noinline]] void weigh(const attention_shape& shape, const attention_work& work,
                             span_of_positions run, std::size_t row, attention_segment& s) {
  if (run.empty()) return;
  constexpr int columns = R == 1 ? 8 : R == 2 ? 4 : 2;
  std::size_t d = 0;
  for (; d + columns * V::width <= shape.head_dim; d += columns * V::width) {
    weigh_columns<V, R, columns, Codes>(shape, work, run, row, d, s);
  }
  for (; d < shape.head_dim; d += V::width) {
    weigh_columns<V, R, 1, Codes>(shape, work, run, row, d, s);
  }
}

/// Scores, softmax and weighted values of one segment for R rows.
template <class V, int R, bool Codes>
[[gnu::noinline]] void attend_segment(const attention_shape& shape, const attention_work& work,
                                      const attention_rows& rows, attention_segment& s) {
  std::size_t begin = s.first + segment_tokens;
  std::size_t end = s.first;
  span_of_positions common{s.first, s.first + segment_tokens};
  for (int r = 0; r < R; ++r) {
    const span_of_positions& all = rows.visible[r];
    span_of_positions& here = s.visible[r];
    here.begin = all.begin > s.first ? all.begin : s.first;
    here.end = all.end < s.first + segment_tokens ? all.end : s.first + segment_tokens;
    for (std::size_t d = 0; d < shape.head_dim; ++d) s.values[r][d] = 0.0F;
    if (here.begin > common.begin) common.begin = here.begin;
    if (here.end < common.end) common.end = here.end;
    if (here.empty()) continue;
    if (here.begin < begin) begin = here.begin;
    if (here.end > end) end = here.end;
  }
  if (begin >= end) return;
  begin -= begin % page_tokens;
  for (std::size_t page = begin; page < end; page += page_tokens) {
    const kv_page& keys = page_of<V>(work, page);
    score_page<V, R, Codes>(rows, head_of<V, Codes>(shape, work, keys.keys),
                            Codes ? scales_of<V>(work, keys.key_scales) : nullptr, shape.head_dim,
                            page - s.first, s);
  }
  const std::size_t last = (end - s.first + page_tokens - 1) / page_tokens * page_tokens;
  for (std::size_t r = 0; r < R; ++r) {
    if (s.visible[r].empty()) continue;
    soften<V>(shape, begin - s.first, last, r, s);
    if constexpr (Codes) scale_weights<V>(work, begin - s.first, last, r, s);
  }
  // A position that some row does not see is not even multiplied by zero for it:
  // what stands there may be infinite.
  if (common.empty()) {
    for (std::size_t r = 0; r < R; ++r) weigh<V, 1, Codes>(shape, work, s.visible[r], r, s);
    return;
  }
  for (std::size_t r = 0; r < R; ++r) {
    weigh<V, 1, Codes>(shape, work, {s.visible[r].begin, common.begin}, r, s);
  }
  weigh<V, R, Codes>(shape, work, common, 0, s);
  for (std::size_t r = 0; r < R; ++r) {
    weigh<V, 1, Codes>(shape, work, {common.end, s.visible[r].end}, r, s);
  }
}

/// Takes a segment into the running result of row r.
template <class V>
void merge_segment(std::size_t head_dim, const attention_segment& s, std::size_t r,
                   attention_rows& rows) {
  if (s.visible[r].empty()) return;
  if (!rows.started[r]) {
    rows.started[r] = true;
    rows.max[r] = s.max[r];
    rows.sum[r] = s.sum[r];
    for (std::size_t d = 0; d < head_dim; ++d) rows.values[r][d] = s.values[r][d];
    return;
  }
  const float top = rows.max[r] > s.max[r] ? rows.max[r] : s.max[r];
  const auto old_factor = exponential<V>(V::set1(rows.max[r] - top));
  const auto new_factor = exponential<V>(V::set1(s.max[r] - top));
  rows.max[r] = top;
  rows.sum[r] = rows.sum[r] * V::first(old_factor) + s.sum[r] * V::first(new_factor);
  map<V>(rows.values[r], s.values[r], head_dim, rows.values[r],
         [&](auto a, auto b) { return V::fma(b, new_factor, V::mul(a, old_factor)); });
}

template <class V, int R, bool Codes>
void attend_rows(const attention_shape& shape, const attention_work& work, attention_rows& rows) {
  std::size_t begin = rows.visible[0].begin;
  std::size_t end = rows.visible[0].end;
  for (int r = 0; r < R; ++r) {
    rows.started[r] = false;
    if (rows.visible[r].begin < begin) begin = rows.visible[r].begin;
    if (rows.visible[r].end > end) end = rows.visible[r].end;
  }
  attention_segment segment;
  for (segment.first = begin / segment_tokens * segment_tokens; segment.first < end;
       segment.first += segment_tokens) {
    attend_segment<V, R, Codes>(shape, work, rows, segment);
    for (std::size_t r = 0; r < R; ++r) merge_segment<V>(shape.head_dim, segment, r, rows);
  }
  for (std::size_t r = 0; r < R; ++r) {
    const auto total = V::set1(rows.sum[r]);
    map<V>(rows.values[r], rows.values[r], shape.head_dim, rows.out[r],
           [&](auto v, auto) { return V::div(v, total); });
  }
}

template <class V, bool Codes>
void attend_all(const attention_shape& shape, const attention_work& work) {
  attention_rows rows;
  const std::size_t total = work.tokens * shape.group;
  for (std::size_t first = 0; first < total; first += row_tile_max) {
    rows.count = total - first < row_tile_max ? total - first : row_tile_max;
    for (std::size_t r = 0; r < rows.count; ++r) {
      const std::size_t token = (first + r) / shape.group;
      const std::size_t head = (first + r) % shape.group;
      const std::size_t end = work.first_position + token + 1;
      rows.q[r] = work.q + token * work.q_stride + head * shape.head_dim;
      rows.out[r] = work.out + token * work.out_stride + head * shape.head_dim;
      rows.visible[r] = {shape.window != 0 && end > shape.window ? end - shape.window : 0, end};
    }
    if (rows.count == 4) attend_rows<V, 4, Codes>(shape, work, rows);
    if (rows.count == 3) attend_rows<V, 3, Codes>(shape, work, rows);
    if (rows.count == 2) attend_rows<V, 2, Codes>(shape, work, rows);
    if (rows.count == 1) attend_rows<V, 1, Codes>(shape, work, rows);
  }
}

template <class V>
void attend(const attention_shape& shape, const attention_work& work) {
  if (work.pages->key_scales != nullptr) return attend_all<V, true>(shape, work);
  attend_all<V, false>(shape, work);
}

}  // namespace octavo::cpu::generic
