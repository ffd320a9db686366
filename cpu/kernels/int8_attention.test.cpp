// Attention over 8-bit pages: against float64 over the same codes, against float64
// over what was rounded, within the bound that the rounding has, and bit by bit.
// Slots that were not written have the scale NaN, so reading one shows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "cpu/kernels/attention.hpp"
#include "model/quantized/scalar.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

constexpr std::size_t kv_heads = 2;

double half(double x) {
  return model::half_to_float(model::float_to_half(static_cast<float>(x)));
}

struct sequence {
  attention_shape shape;
  std::size_t tokens;
  std::vector<float> q, k, v;  // [token][head][dim]
  std::vector<std::uint16_t> pool;
  std::vector<kv_page> pages;

  sequence(const attention_shape& s, std::size_t count) : shape(s), tokens(count) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const std::size_t width = kv_heads * shape.head_dim;
    for (auto* values : {&q, &k, &v}) {
      values->resize(tokens * width * (values == &q ? shape.group : 1));
      for (float& value : *values) value = normal(random);
    }
    // Vectors of very different lengths, and one of zeros.
    for (std::size_t d = 0; d < width; ++d) {
      v[d] *= 100;
      if (tokens > 3) k[3 * width + d] = v[2 * width + d] = 0;
    }
    const std::size_t part = page_tokens * width / 2;  // two codes in 16 bits
    const std::size_t scales = page_tokens * kv_heads;
    const std::size_t count_pages = (tokens + page_tokens - 1) / page_tokens;
    pool.resize(count_pages * 2 * (part + scales));
    for (std::size_t i = 0; i < count_pages; ++i) {
      std::uint16_t* at = pool.data() + (count_pages - 1 - i) * 2 * (part + scales);
      pages.push_back({at, at + part, at + 2 * part, at + 2 * part + scales});
    }
  }

  std::vector<float> run(std::size_t chunk, isa kind) {
    std::fill(pool.begin(), pool.end(), std::uint16_t{0x7E7E});  // NaN as a scale
    std::vector<float> out(q.size());
    const std::size_t dim = shape.head_dim;
    const std::size_t stride = kv_heads * shape.group * dim;
    for (std::size_t begin = 0; begin < tokens; begin += chunk) {
      const std::size_t end = std::min(begin + chunk, tokens);
      for (std::size_t t = begin; t < end; ++t) {
        for (std::size_t h = 0; h < kv_heads; ++h) {
          const std::size_t at = (t * kv_heads + h) * dim;
          write_kv(pages[t / page_tokens], h, t % page_tokens, dim, k.data() + at, v.data() + at);
        }
      }
      for (std::size_t h = 0; h < kv_heads; ++h) {
        const std::size_t at = begin * stride + h * shape.group * dim;
        const attention_work work{.q = q.data() + at,
                                  .q_stride = stride,
                                  .first_position = begin,
                                  .tokens = end - begin,
                                  .pages = pages.data(),
                                  .first_page = 0,
                                  .kv_head = h,
                                  .out = out.data() + at,
                                  .out_stride = stride};
        attend(shape, work, kernels_for(kind));
      }
    }
    return out;
  }

  /// A head's key or value as it is kept, and half the step between two codes.
  [[nodiscard]] std::vector<double> kept(const std::vector<float>& from, std::size_t at,
                                         double* half_step = nullptr) const {
    std::vector<double> x(from.begin() + static_cast<std::ptrdiff_t>(at),
                          from.begin() + static_cast<std::ptrdiff_t>(at + shape.head_dim));
    double largest = 0;
    for (const double value : x) largest = std::max(largest, std::fabs(value));
    const double step = half(largest / 127);
    for (double& value : x) value = step == 0 ? 0 : step * std::nearbyint(value / step);
    if (half_step != nullptr) *half_step = step / 2;
    return x;
  }

  struct row {
    std::vector<double> of_kept;  ///< attention over the codes
    std::vector<double> exact;    ///< over what was rounded
    double bound = 0;             ///< of the difference
  };
  /// In float64. Scores move by e at most, half a step times the query's length in the
  /// 1-norm; weights so by a factor within exp(2 e), and all of them by exp(2 e) - 1.
  [[nodiscard]] row expected(std::size_t token, std::size_t h) const {
    const std::size_t dim = shape.head_dim;
    const float* query = q.data() + (token * kv_heads * shape.group + h) * dim;
    const std::size_t begin =
        shape.window != 0 && token + 1 > shape.window ? token + 1 - shape.window : 0;
    row made{std::vector<double>(dim), std::vector<double>(dim)};
    double totals[2] = {0, 0};
    double e = 0;
    double largest = 0;
    double value_step = 0;
    for (std::size_t t = begin; t <= token; ++t) {
      const std::size_t at = (t * kv_heads + h / shape.group) * dim;
      double k_step = 0;
      double v_step = 0;
      const auto key = kept(k, at, &k_step);
      const auto value = kept(v, at, &v_step);
      double scores[2] = {0, 0};
      double length = 0;
      for (std::size_t d = 0; d < dim; ++d) {
        scores[0] += query[d] * key[d];
        scores[1] += static_cast<double>(query[d]) * k[at + d];
        length += std::fabs(query[d]);
        largest = std::max(largest, std::fabs(static_cast<double>(v[at + d])));
      }
      e = std::max(e, static_cast<double>(shape.scale) * length * k_step);
      value_step = std::max(value_step, v_step);
      for (int i = 0; i < 2; ++i) {
        const double weight = std::exp(scores[i] * static_cast<double>(shape.scale));
        totals[i] += weight;
        auto& out = i == 0 ? made.of_kept : made.exact;
        for (std::size_t d = 0; d < dim; ++d) {
          out[d] += weight * (i == 0 ? value[d] : static_cast<double>(v[at + d]));
        }
      }
    }
    for (double& x : made.of_kept) x /= totals[0];
    for (double& x : made.exact) x /= totals[1];
    made.bound = (std::exp(2 * e) - 1) * largest + value_step;
    return made;
  }
};

std::vector<attention_shape> shapes() {
  const auto make = [](std::size_t dim, std::size_t group, std::size_t window) {
    return attention_shape{dim, group, 1.0F / std::sqrt(static_cast<float>(dim)), window, 0};
  };
  return {make(64, 3, 0), make(8, 1, 0), make(24, 2, 0), make(128, 4, 100), make(256, 5, 300)};
}

}  // namespace

TEST_CASE("attention over 8-bit pages agrees with float64 over the same codes") {
  for (const isa kind : available_isas()) {
    for (const attention_shape& shape : shapes()) {
      sequence s(shape, 300);
      const auto out = s.run(300, kind);
      const std::size_t heads = kv_heads * shape.group;
      for (const std::size_t t : {0U, 1U, 5U, 15U, 16U, 40U, 255U, 256U, 299U}) {
        for (std::size_t h = 0; h < heads; ++h) {
          CAPTURE(to_string(kind), shape.head_dim, t, h);
          const auto expected = s.expected(t, h);
          double error = 0;
          double distance = 0;
          for (std::size_t d = 0; d < shape.head_dim; ++d) {
            const double got = out[(t * heads + h) * shape.head_dim + d];
            REQUIRE(std::isfinite(got));
            error = std::max(
                error, std::fabs(got - expected.of_kept[d]) / (1 + std::fabs(expected.of_kept[d])));
            distance = std::max(distance, std::fabs(got - expected.exact[d]));
          }
          // Sums in float32, as over fp16 pages; values of 100 and 1 are mixed here.
          CHECK(error < 1e-4);
          CHECK(distance <= expected.bound + 1e-3);
        }
      }
    }
  }
}

TEST_CASE("attention over 8-bit pages gives the same bits however a prompt is cut") {
  for (const isa kind : available_isas()) {
    for (const attention_shape& shape : shapes()) {
      sequence s(shape, 300);
      const auto whole = s.run(300, kind);
      for (const std::size_t chunk : {1U, 7U, 16U, 257U}) {
        CAPTURE(to_string(kind), shape.head_dim, chunk);
        const auto cut = s.run(chunk, kind);
        REQUIRE(std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("a key or value that is not finite makes its readers NaN and no others") {
  for (const isa kind : available_isas()) {
    sequence s({64, 3, 0.125F, 0, 0}, 40);
    const auto before = s.run(40, kind);
    s.v[37 * kv_heads * 64 + 5] = std::nanf("");
    const auto after = s.run(40, kind);
    const std::size_t row = kv_heads * 3 * 64;
    CHECK(std::memcmp(before.data(), after.data(), 37 * row * sizeof(float)) == 0);
    CHECK(std::isnan(after[37 * row]));
  }
}
