// Attention against float64, and its bits against themselves however a prompt is
// cut. Slots that were not written hold NaN, so reading one shows.
#include "cpu/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "cpu/kernels/layout.hpp"
#include "cpu/kernels/test_matrices.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

constexpr std::size_t kv_heads = 2;

/// A sequence of `tokens` with random queries, keys and values, and its pages.
struct sequence {
  attention_shape shape;
  std::size_t tokens;
  std::vector<float> q;     // [token][kv head][group][dim]
  std::vector<float> k, v;  // [token][kv head][dim]
  std::vector<std::uint16_t> pool;
  std::vector<kv_page> pages;

  sequence(const attention_shape& s, std::size_t count) : shape(s), tokens(count) {
    const std::size_t width = kv_heads * shape.head_dim;
    q = make_random_rows(tokens, width * shape.group, 1);
    k = make_random_rows(tokens, width, 2);
    v = make_random_rows(tokens, width, 3);
    const std::size_t count_pages = (tokens + page_tokens - 1) / page_tokens;
    pool.assign(count_pages * 2 * page_tokens * width, 0x7E00);
    for (std::size_t i = 0; i < count_pages; ++i) {
      // Blocks lie in any order.
      std::uint16_t* at = pool.data() + (count_pages - 1 - i) * 2 * page_tokens * width;
      pages.push_back({at, at + page_tokens * width});
    }
  }

  void write(std::size_t begin, std::size_t end) {
    const std::size_t dim = shape.head_dim;
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t h = 0; h < kv_heads; ++h) {
        const std::size_t at = (t * kv_heads + h) * dim;
        write_kv(pages[t / page_tokens], h, t % page_tokens, dim, k.data() + at, v.data() + at);
      }
    }
  }

  /// Prefill in chunks: writes and attends chunk by chunk.
  std::vector<float> run(std::size_t chunk, isa kind) {
    std::fill(pool.begin(), pool.end(), std::uint16_t{0x7E00});
    std::vector<float> out(q.size());
    const std::size_t stride = kv_heads * shape.group * shape.head_dim;
    for (std::size_t begin = 0; begin < tokens; begin += chunk) {
      const std::size_t end = std::min(begin + chunk, tokens);
      write(begin, end);
      for (std::size_t h = 0; h < kv_heads; ++h) {
        const std::size_t at = begin * stride + h * shape.group * shape.head_dim;
        attention_work work{.q = q.data() + at,
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

  /// Row (token, head h of all query heads) in float64, from keys and values as
  /// fp16 holds them.
  [[nodiscard]] std::vector<double> reference(std::size_t token, std::size_t h) const {
    const std::size_t dim = shape.head_dim;
    const auto half = [](float x) { return double{model::half_to_float(model::float_to_half(x))}; };
    const float* query = q.data() + (token * kv_heads * shape.group + h) * dim;
    const std::size_t begin =
        shape.window != 0 && token + 1 > shape.window ? token + 1 - shape.window : 0;
    std::vector<double> scores;
    for (std::size_t t = begin; t <= token; ++t) {
      double s = 0;
      for (std::size_t d = 0; d < dim; ++d) {
        s += query[d] * half(k[(t * kv_heads + h / shape.group) * dim + d]);
      }
      s *= shape.scale;
      if (shape.soft_cap != 0) s = shape.soft_cap * std::tanh(s / shape.soft_cap);
      scores.push_back(s);
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    std::vector<double> out(dim);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double e = std::exp(scores[i] - top);
      total += e;
      for (std::size_t d = 0; d < dim; ++d) {
        out[d] += e * half(v[((begin + i) * kv_heads + h / shape.group) * dim + d]);
      }
    }
    for (double& x : out) x /= total;
    return out;
  }
};

double largest_error(const sequence& s, const std::vector<float>& out) {
  double worst = 0;
  const std::size_t heads = kv_heads * s.shape.group;
  for (std::size_t t = 0; t < s.tokens; t += t < 40 ? 1 : 13) {
    for (std::size_t h = 0; h < heads; ++h) {
      const auto expected = s.reference(t, h);
      for (std::size_t d = 0; d < s.shape.head_dim; ++d) {
        const double got = out[(t * heads + h) * s.shape.head_dim + d];
        const double error = std::fabs(got - expected[d]);
        worst = std::isnan(got) ? 1e9 : std::max(worst, error / (1 + std::fabs(expected[d])));
      }
    }
  }
  return worst;
}

std::vector<attention_shape> shapes() {
  const auto make = [](std::size_t dim, std::size_t group, std::size_t window, float cap) {
    return attention_shape{dim, group, 1.0F / std::sqrt(static_cast<float>(dim)), window, cap};
  };
  return {make(64, 3, 0, 0),  make(8, 1, 0, 0),    make(24, 2, 0, 0),
          make(128, 4, 0, 0), make(256, 5, 0, 0),  make(64, 3, 100, 0),
          make(64, 7, 1, 0),  make(32, 3, 300, 0), make(64, 2, 0, 20)};
}

}  // namespace

TEST_CASE("attention agrees with float64") {
  for (const isa kind : available_isas()) {
    for (const attention_shape& shape : shapes()) {
      for (const std::size_t tokens : {1U, 17U, 530U}) {
        INFO(to_string(kind) << " dim " << shape.head_dim << " group " << shape.group << " window "
                             << shape.window << " tokens " << tokens);
        sequence s(shape, tokens);
        // Scores are sums of up to 256 terms with magnitudes that add up to about 50;
        // their rounding, 50 x 256^0.5 x 2^-24, shows in the exponentials.
        CHECK(largest_error(s, s.run(tokens, kind)) < 5e-5);
      }
    }
  }
}

TEST_CASE("a prompt gives the same bits however it is cut into chunks") {
  for (const isa kind : available_isas()) {
    for (const attention_shape& shape : shapes()) {
      sequence s(shape, 530);
      const auto whole = s.run(530, kind);
      for (const std::size_t chunk : {1U, 7U, 16U, 256U, 257U}) {
        INFO(to_string(kind) << " dim " << shape.head_dim << " group " << shape.group << " window "
                             << shape.window << " chunk " << chunk);
        const auto cut = s.run(chunk, kind);
        REQUIRE(std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("what a later token holds does not reach an earlier one") {
  for (const isa kind : available_isas()) {
    sequence s({64, 3, 0.125F, 0, 0}, 40);
    const auto before = s.run(40, kind);
    // Beyond the range of fp16: infinite in the cache.
    for (std::size_t d = 0; d < 2 * 64; ++d) s.v[37 * 2 * 64 + d] = 1e6F;
    const auto after = s.run(40, kind);
    const std::size_t row = 2 * 3 * 64;
    CHECK(std::memcmp(before.data(), after.data(), 37 * row * sizeof(float)) == 0);
    CHECK(std::isinf(after[37 * row]));
  }
}

TEST_CASE("pages before the window are not looked at") {
  for (const isa kind : available_isas()) {
    sequence s({64, 3, 0.125F, 32, 0}, 300);
    const auto expected = s.run(300, kind);
    const std::size_t stride = 2 * 3 * 64;
    std::vector<float> out(stride);
    // Token 299 sees 268 … 299: pages 16, 17 and 18.
    const attention_work work{.q = s.q.data() + 299 * stride,
                              .q_stride = stride,
                              .first_position = 299,
                              .tokens = 1,
                              .pages = s.pages.data() + 16,
                              .first_page = 16,
                              .kv_head = 0,
                              .out = out.data(),
                              .out_stride = stride};
    attend(s.shape, work, kernels_for(kind));
    CHECK(std::memcmp(out.data(), expected.data() + 299 * stride, 3 * 64 * sizeof(float)) == 0);
  }
}

TEST_CASE("attention computed by hand") {
  // Two tokens, q·k = 0 and ln 3: weights 1/4 and 3/4 of values 4 and 8.
  sequence s({8, 1, 1.0F, 0, 0}, 2);
  std::fill(s.q.begin(), s.q.end(), 0.0F);
  std::fill(s.k.begin(), s.k.end(), 0.0F);
  std::fill(s.v.begin(), s.v.end(), 0.0F);
  s.q[16] = 1.0986123F / 2;
  s.k[16] = 2.0F;
  s.v[0] = 4.0F;
  s.v[16] = 8.0F;
  for (const isa kind : available_isas()) {
    const auto out = s.run(2, kind);
    CHECK(out[0] == 4.0F);
    CHECK(out[16] == Catch::Approx(7.0F).epsilon(1e-6));
  }
}

TEST_CASE("head sizes without a kernel are refused") {
  CHECK_NOTHROW(check_attention_shape({64, 1, 1, 0, 0}));
  for (const std::size_t dim : {0U, 4U, 63U, 520U}) {
    CHECK_THROWS_AS(check_attention_shape({dim, 1, 1, 0, 0}), input_error);
  }
}
