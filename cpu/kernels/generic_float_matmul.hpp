// The matrix product for weights that are floats, once for all instruction sets;
// V as in generic_matmul.hpp. An output is two chains of fused multiply-adds, over
// even and over odd inputs, added at the end.
#pragma once

#include <cstddef>

#include "cpu/kernels/generic_matmul.hpp"

namespace octavo::cpu::generic {

/// Eight weights a tile, of one input.
template <class V, layout Kind>
[[gnu::always_inline]] inline typename V::floats load_weights(const std::byte* at,
                                                              std::size_t apart) {
  if constexpr (Kind == layout::f32) return V::singles(at, apart);
  if constexpr (Kind == layout::f16) return V::halves(at, apart);
  if constexpr (Kind == layout::bf16) return V::bfloats(at, apart);
  if constexpr (Kind == layout::f8_e4m3) return V::small_floats(at, apart);
}

template <class V, layout Kind, int M>
[[gnu::noinline]] void multiply_float_block(const weights_view& w, std::size_t tile, const float* x,
                                            std::size_t ldx, float* y, std::size_t ldy) {
  constexpr std::size_t stride = tile_rows * float_bytes(Kind);
  const std::size_t apart = w.inputs * stride;
  const std::byte* at = w.codes + tile * apart;
  typename V::floats even[M];
  typename V::floats odd[M];
  repeat<M>([&](auto m) {
    even[m] = V::set1(0.0F);
    odd[m] = V::set1(0.0F);
  });
  constexpr bool scaled = Kind == layout::f8_e4m3;
  const std::size_t run = scaled ? w.run_inputs : w.inputs;
  const std::byte* scales = w.scales + tile * w.groups * 32;
  for (std::size_t k = 0; k < w.inputs; scales += 32) {
    const std::size_t end = k + run < w.inputs ? k + run : w.inputs;
    auto scale = V::set1(1.0F);
    if constexpr (scaled) scale = V::singles(scales, w.groups * 32);
    const auto weights = [&](const std::byte* from) {
      const auto v = load_weights<V, Kind>(from, apart);
      if constexpr (scaled) return V::mul(v, scale);
      return v;
    };
    for (; k + 2 <= end; k += 2, at += 2 * stride) {
      repeat<V::tiles>([&](auto t) { prefetch<2 * stride>(at + t * apart + prefetch_distance); });
      const auto first = weights(at);
      const auto second = weights(at + stride);
      repeat<M>([&](auto m) {
        even[m] = V::fma(first, V::set1(x[m * ldx + k]), even[m]);
        odd[m] = V::fma(second, V::set1(x[m * ldx + k + 1]), odd[m]);
      });
    }
    // Runs are of even length, but for the last.
    if (k < end) {
      const auto last = weights(at);
      repeat<M>([&](auto m) { even[m] = V::fma(last, V::set1(x[m * ldx + k]), even[m]); });
      ++k;
    }
  }
  const std::size_t n = tile * tile_rows;
  repeat<M>([&](auto m) { V::store(y + m * ldy + n, V::add(even[m], odd[m]), w.rows - n); });
}

template <class V, layout Kind>
void multiply_float_rows(const weights_view& w, std::size_t tile, const float* x, std::size_t rows,
                         std::size_t ldx, float* y, std::size_t ldy) {
  std::size_t m = 0;
  for (; m + 4 <= rows; m += 4) {
    multiply_float_block<V, Kind, 4>(w, tile, x + m * ldx, ldx, y + m * ldy, ldy);
  }
  for (; m < rows; ++m) {
    multiply_float_block<V, Kind, 1>(w, tile, x + m * ldx, ldx, y + m * ldy, ldy);
  }
}

template <class V, class One, layout Kind>
void multiply_floats(const weights_view& w, const float* x, std::size_t rows, std::size_t ldx,
                     std::size_t first, std::size_t tiles, float* y, std::size_t ldy) {
  constexpr std::size_t rows_per_pass = panels_per_pass * panel_rows;
  for (std::size_t pass = 0; pass < rows; pass += rows_per_pass) {
    const std::size_t count = rows - pass < rows_per_pass ? rows - pass : rows_per_pass;
    std::size_t tile = first;
    for (; tile + V::tiles <= first + tiles; tile += V::tiles) {
      multiply_float_rows<V, Kind>(w, tile, x + pass * ldx, count, ldx, y + pass * ldy, ldy);
    }
    for (; tile < first + tiles; ++tile) {
      multiply_float_rows<One, Kind>(w, tile, x + pass * ldx, count, ldx, y + pass * ldy, ldy);
    }
  }
}

template <class V, class One>
void multiply_any_floats(const weights_view& w, const float* x, std::size_t rows, std::size_t ldx,
                         std::size_t first, std::size_t tiles, float* y, std::size_t ldy) {
  switch (w.kind) {
    case layout::f32:
      return multiply_floats<V, One, layout::f32>(w, x, rows, ldx, first, tiles, y, ldy);
    case layout::f16:
      return multiply_floats<V, One, layout::f16>(w, x, rows, ldx, first, tiles, y, ldy);
    case layout::bf16:
      return multiply_floats<V, One, layout::bf16>(w, x, rows, ldx, first, tiles, y, ldy);
    case layout::f8_e4m3:
      return multiply_floats<V, One, layout::f8_e4m3>(w, x, rows, ldx, first, tiles, y, ldy);
    default:
      break;
  }
}

}  // namespace octavo::cpu::generic
