// The matrix product, written once for all instruction sets. V, a type private to
// each translation unit, gives the vector operations:
//
//   rows_max           activation rows handled together, a power of two up to 8
//   tiles              row tiles that a vector of 32-bit lanes spans (1 or 2)
//   bytes load(p, d)   32 code bytes a tile; further tiles lie d bytes apart
//   start<Z>, step, total                sums of code x input over one block
//   start_wide, widen, step_wide, total_wide   the same for codes of 8 bits
//
// An output's value is one chain of operations over the blocks, in order, or the sum
// of two where its activations have two terms. Neither the number of rows handled
// together nor the split into tiles enters it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/kernels/layout.hpp"

namespace octavo::cpu::generic {

/// Calls body(constant 0) … body(constant N - 1), unrolled.
template <int N, class Body>
[[gnu::always_inline]] inline void repeat(Body&& body) {
  [&]<int... I>(std::integer_sequence<int, I...>) [[gnu::always_inline]] {
    (body(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

/// What the formats differ in.
template <layout Kind>
struct format {
  static constexpr bool k = Kind == layout::u4_k || Kind == layout::u5_k;
  static constexpr bool grouped = is_grouped(Kind);
  static constexpr int bits =
      Kind == layout::u8_scale || Kind == layout::u8_group                               ? 8
      : Kind == layout::u6_k                                                             ? 6
      : Kind == layout::u5_scale || Kind == layout::u5_scale_min || Kind == layout::u5_k ? 5
                                                                                         : 4;
  /// What is taken from codes inside the integer sums: half their range, except
  /// for 4 bits, whose sums fit 16 bits as they are.
  static constexpr int zero = bits == 4 ? 0 : 1 << (bits - 1);
  /// Scales for each half of a block?
  static constexpr bool halves = Kind == layout::u6_k;
  static constexpr bool has_min = k || grouped || bits == 4 || Kind == layout::u5_scale_min;
  static constexpr layout_bytes bytes = bytes_of(Kind);
};

template <class V>
struct block_scales {
  typename V::floats scale;
  typename V::floats second;  ///< of the second half
  typename V::floats min;
};

/// Scales of block b; the pointers are those of the first tile's first block.
template <class V, layout Kind>
[[gnu::always_inline]] inline block_scales<V> load_scales(const weights_view& w,
                                                          const std::byte* scales,
                                                          const std::byte* supers, std::size_t b) {
  using F = format<Kind>;
  const std::size_t blocks = w.blocks;
  const std::size_t apart = blocks * F::bytes.scales_per_block;
  const std::byte* at = scales + b * F::bytes.scales_per_block;
  block_scales<V> out;
  if constexpr (F::grouped) {
    const std::byte* group = scales + w.block_groups[b] * F::bytes.scales_per_block;
    const std::size_t groups_apart = w.groups * F::bytes.scales_per_block;
    out.scale = V::singles(group, groups_apart);
    out.min = V::negated(V::mul(out.scale, V::unsigned_bytes(group + 32, groups_apart)));
  } else if constexpr (F::k) {
    const std::size_t super_apart = blocks / super_blocks * F::bytes.supers;
    const std::byte* super = supers + b / super_blocks * F::bytes.supers;
    out.scale = V::mul(V::halves(super, super_apart), V::unsigned_bytes(at, apart));
    out.min =
        V::negated(V::mul(V::halves(super + 16, super_apart), V::unsigned_bytes(at + 8, apart)));
  } else if constexpr (F::halves) {
    const std::size_t super_apart = blocks / super_blocks * F::bytes.supers;
    const auto d = V::halves(supers + b / super_blocks * F::bytes.supers, super_apart);
    out.scale = V::mul(d, V::signed_bytes(at, apart));
    out.second = V::mul(d, V::signed_bytes(at + 8, apart));
  } else {
    out.scale = V::halves(at, apart);
    if constexpr (Kind == layout::u4_scale) out.min = V::mul(out.scale, V::set1(-8.0F));
    if constexpr (F::bytes.scales_per_block == 32) out.min = V::halves(at + 16, apart);
  }
  // Where the sums are taken of c - zero, so is the minimum.
  if constexpr (F::has_min && F::zero != 0) {
    out.min = V::fma(out.scale, V::set1(static_cast<float>(F::zero)), out.min);
  }
  return out;
}

/// The two vectors of codes number j: inputs 4 j … and 16 + 4 j ….
template <class V, int Bits, int J>
[[gnu::always_inline]] inline void load_codes(const std::byte* at, std::size_t apart,
                                              typename V::bytes& low, typename V::bytes& high) {
  const auto pair = V::load(at + 32 * J, apart);
  low = V::low_nibbles(pair);
  high = V::high_nibbles(pair);
  if constexpr (Bits == 5) {
    const auto plane = V::load(at + 128, apart);
    low = V::either(low, V::template move_bits<2 * J, 1, 4>(plane));
    high = V::either(high, V::template move_bits<2 * J + 1, 1, 4>(plane));
  } else if constexpr (Bits == 6) {
    const auto plane = V::load(at + 128 + 32 * (J / 2), apart);
    low = V::either(low, V::template move_bits<4 * (J % 2), 2, 4>(plane));
    high = V::either(high, V::template move_bits<4 * (J % 2) + 2, 2, 4>(plane));
  }
}

/// dots[m] = sum over the block of (code - zero) x input, times the scale of
/// each half where halves have one (Kind u6_k), else unscaled.
template <class V, layout Kind, int M>
[[gnu::always_inline]] inline void block_dots(const std::byte* codes, std::size_t apart,
                                              const std::int8_t* x, const std::int16_t* pairs,
                                              const block_scales<V>& scales,
                                              typename V::floats (&dots)[M]) {
  using F = format<Kind>;
  if constexpr (F::bits == 8) {
    typename V::wide_sum sums[M];
    repeat<M>([&](auto m) { sums[m] = V::template start_wide<F::zero>(pairs + 4 * m); });
    repeat<8>([&](auto j) [[gnu::always_inline]] {
      const auto c = V::widen(V::load(codes + 32 * j, apart));
      repeat<M>([&](auto m) {
        sums[m] = V::step_wide(sums[m], c, V::four(x + block_inputs * m + 4 * j));
      });
    });
    repeat<M>([&](auto m) { dots[m] = V::total_wide(sums[m]); });
  } else if constexpr (F::halves) {
    typename V::sum first[M];
    typename V::sum second[M];
    repeat<M>([&](auto m) {
      first[m] = V::template start_half<F::zero>(pairs + 4 * m);
      second[m] = V::template start_half<F::zero>(pairs + 4 * m + 2);
    });
    repeat<4>([&](auto j) [[gnu::always_inline]] {
      typename V::bytes low;
      typename V::bytes high;
      load_codes<V, F::bits, decltype(j)::value>(codes, apart, low, high);
      repeat<M>([&](auto m) {
        first[m] = V::step(first[m], low, V::four(x + block_inputs * m + 4 * j));
        second[m] = V::step(second[m], high, V::four(x + block_inputs * m + 16 + 4 * j));
      });
    });
    repeat<M>([&](auto m) {
      dots[m] =
          V::fma(V::total(second[m]), scales.second, V::mul(V::total(first[m]), scales.scale));
    });
  } else {
    typename V::sum sums[M];
    repeat<M>([&](auto m) { sums[m] = V::template start<F::zero>(pairs + 4 * m); });
    repeat<4>([&](auto j) [[gnu::always_inline]] {
      typename V::bytes low;
      typename V::bytes high;
      load_codes<V, F::bits, decltype(j)::value>(codes, apart, low, high);
      repeat<M>([&](auto m) {
        sums[m] = V::step(sums[m], low, V::four(x + block_inputs * m + 4 * j));
        sums[m] = V::step(sums[m], high, V::four(x + block_inputs * m + 16 + 4 * j));
      });
    });
    repeat<M>([&](auto m) { dots[m] = V::total(sums[m]); });
  }
}

/// One panel of activation rows, from its row `slot` on.
struct panel_slot {
  const std::int8_t* codes;
  const float* scales;
  const float* sums;
  const std::int16_t* pairs;
  /// Rows of the panel.
  std::size_t width;
  std::size_t terms;
};

/// How far ahead of its use weight memory is asked for, in bytes.
inline constexpr std::size_t prefetch_distance = 4096;

template <std::size_t Bytes>
[[gnu::always_inline]] inline void prefetch(const std::byte* at) {
  for (std::size_t line = 0; line < Bytes; line += 64) __builtin_prefetch(at + line);
}

/// M activation rows times the output rows of V::tiles tiles. Rows of two terms come
/// in pairs, so that M is even.
template <class V, layout Kind, int M>
[[gnu::noinline]] void multiply_block(const weights_view& w, std::size_t tile, panel_slot x,
                                      float* y, std::size_t ldy) {
  using F = format<Kind>;
  const std::size_t apart = w.blocks * F::bytes.codes_per_block;
  const std::byte* codes = w.codes + tile * apart;
  const std::size_t scale_fields = F::grouped ? w.groups : w.blocks;
  const std::byte* scales = w.scales + tile * scale_fields * F::bytes.scales_per_block;
  const std::byte* supers = w.supers + tile * (w.blocks / super_blocks) * F::bytes.supers;
  typename V::floats sums[M];
  repeat<M>([&](auto m) { sums[m] = V::set1(0.0F); });
  for (std::size_t b = 0; b < w.blocks; ++b) {
    repeat<V::tiles>(
        [&](auto t) { prefetch<F::bytes.codes_per_block>(codes + t * apart + prefetch_distance); });
    const auto s = load_scales<V, Kind>(w, scales, supers, b);
    typename V::floats dots[M];
    block_dots<V, Kind, M>(codes, apart, x.codes, x.pairs, s, dots);
    repeat<M>([&](auto m) {
      const auto input_scale = V::set1(x.scales[m]);
      if constexpr (F::halves) {
        sums[m] = V::fma(dots[m], input_scale, sums[m]);
      } else {
        sums[m] = V::fma(dots[m], V::mul(s.scale, input_scale), sums[m]);
      }
      if constexpr (F::has_min) sums[m] = V::fma(s.min, V::set1(x.sums[m]), sums[m]);
    });
    codes += F::bytes.codes_per_block;
    x.codes += x.width * block_inputs;
    x.scales += x.width;
    x.sums += x.width;
    x.pairs += x.width * 4;
  }
  const std::size_t n = tile * tile_rows;
  const std::size_t left = w.rows - n;
  if constexpr (M % 2 == 0) {
    if (x.terms == 2) {
      repeat<M / 2>(
          [&](auto m) { V::store(y + m * ldy + n, V::add(sums[2 * m], sums[2 * m + 1]), left); });
      return;
    }
  }
  repeat<M>([&](auto m) { V::store(y + m * ldy + n, sums[m], left); });
}

template <class V, layout Kind>
void multiply_panel(const weights_view& w, std::size_t tile, panel_slot x, float* y,
                    std::size_t ldy) {
  std::size_t m = 0;
  const auto step = [&]<int M>(std::integral_constant<int, M>) {
    if constexpr (M <= V::rows_max) {
      for (; m + M <= x.width; m += M) {
        const panel_slot from{x.codes + m * block_inputs,
                              x.scales + m,
                              x.sums + m,
                              x.pairs + 4 * m,
                              x.width,
                              x.terms};
        multiply_block<V, Kind, M>(w, tile, from, y + m / x.terms * ldy, ldy);
      }
    }
  };
  step(std::integral_constant<int, 8>{});
  step(std::integral_constant<int, 4>{});
  step(std::integral_constant<int, 2>{});
  step(std::integral_constant<int, 1>{});
}

/// Activation rows that stay in the second-level cache while tiles pass by.
inline constexpr std::size_t panels_per_pass = 8;

/// V is used while two or more of its tiles are left, then One, which spans one
/// tile with the same arithmetic.
template <class V, class One, layout Kind>
void multiply(const weights_view& w, const rows_view& x, std::size_t first, std::size_t tiles,
              float* y, std::size_t ldy) {
  const std::size_t panels = (x.rows + panel_rows - 1) / panel_rows;
  for (std::size_t pass = 0; pass < panels; pass += panels_per_pass) {
    const std::size_t pass_end = pass + panels_per_pass < panels ? pass + panels_per_pass : panels;
    for (std::size_t tile = first; tile < first + tiles;) {
      const bool wide = tile + V::tiles <= first + tiles;
      for (std::size_t p = pass; p < pass_end; ++p) {
        const std::size_t row = p * panel_rows;
        const std::size_t at = row * x.blocks;
        const std::size_t width = x.rows - row < panel_rows ? x.rows - row : panel_rows;
        const panel_slot slot{x.codes + at * block_inputs,
                              x.scales + at,
                              x.sums + at,
                              x.pairs + at * 4,
                              width,
                              x.terms};
        float* to = y + row / x.terms * ldy;
        if (wide) {
          multiply_panel<V, Kind>(w, tile, slot, to, ldy);
        } else {
          multiply_panel<One, Kind>(w, tile, slot, to, ldy);
        }
      }
      tile += wide ? V::tiles : 1;
    }
  }
}

template <class V, class One>
void multiply_any(const weights_view& w, const rows_view& x, std::size_t first, std::size_t tiles,
                  float* y, std::size_t ldy) {
  const auto run = [&]<layout Kind>(std::integral_constant<layout, Kind>) {
    multiply<V, One, Kind>(w, x, first, tiles, y, ldy);
  };
  switch (w.kind) {
    case layout::u4_scale:
      return run(std::integral_constant<layout, layout::u4_scale>{});
    case layout::u4_scale_min:
      return run(std::integral_constant<layout, layout::u4_scale_min>{});
    case layout::u4_k:
      return run(std::integral_constant<layout, layout::u4_k>{});
    case layout::u5_scale:
      return run(std::integral_constant<layout, layout::u5_scale>{});
    case layout::u5_scale_min:
      return run(std::integral_constant<layout, layout::u5_scale_min>{});
    case layout::u5_k:
      return run(std::integral_constant<layout, layout::u5_k>{});
    case layout::u6_k:
      return run(std::integral_constant<layout, layout::u6_k>{});
    case layout::u8_scale:
      return run(std::integral_constant<layout, layout::u8_scale>{});
    case layout::u4_group:
      return run(std::integral_constant<layout, layout::u4_group>{});
    case layout::u8_group:
      return run(std::integral_constant<layout, layout::u8_group>{});
    default:
      break;
  }
}

}  // namespace octavo::cpu::generic
