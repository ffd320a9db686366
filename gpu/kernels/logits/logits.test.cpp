// Finished logits against float64.
#include "gpu/kernels/logits/logits.hpp"

#include "core/error.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

template <class T>
void check(int rows, int vocabulary, int shards, int shard_width, float factor, float cap) {
  const auto n = static_cast<std::size_t>(shards) * rows * shard_width;
  const auto input = random_rows<T>(n, 1, 20);
  std::vector<double> expected;
  for (int row = 0; row < rows; ++row) {
    for (int v = 0; v < vocabulary; ++v) {
      const auto at = (v / shard_width * rows + row) * shard_width + v % shard_width;
      const double x = static_cast<double>(static_cast<float>(input[at])) * factor;
      expected.push_back(cap > 0 ? cap * std::tanh(x / cap) : x);
    }
  }
  simt::for_each_schedule([&](const char* name) {
    INFO(name << ", " << rows << " x " << vocabulary << ", shards " << shards);
    stream s;
    auto d_input = on_device(s, input);
    device_array<float> output(expected.size());
    logits_params p;
    p.type = dtype_of<T>;
    p.rows = rows;
    p.vocabulary = vocabulary;
    p.shards = shards;
    p.shard_width = shard_width;
    p.input = d_input.data();
    p.scale = factor;
    p.soft_cap = cap;
    p.output = output.data();
    finish_logits(p, s);
    CHECK(worst_error(on_host(s, output), expected, 1e-3) < 1e-6);
  });
}

}  // namespace

TEST_CASE("logits of all ranks are joined, scaled and capped") {
  check<float>(1, 1, 1, 1, 1, 0);
  check<float>(2, 1500, 1, 1504, 1, 30);
  check<__half>(3, 2047, 2, 1024, 0.25F, 0);
  check<__nv_bfloat16>(1, 1025, 4, 320, 1, 50);
}

TEST_CASE("logits in place take one shard of floats") {
  stream s;
  auto x = on_device(s, std::vector<float>{100, -100, 0});
  logits_params p;
  p.rows = 1;
  p.vocabulary = p.shard_width = 3;
  p.input = x.data();
  p.soft_cap = 2;
  p.output = x.data();
  finish_logits(p, s);
  CHECK(on_host(s, x) == std::vector<float>{2, -2, 0});
  p.shards = 2;
  CHECK_THROWS_AS(finish_logits(p, s), input_error);
}
