// The workspace of a linear layer's products.
#include "gpu/executor/device_linear.hpp"

#include "gpu/kernels/dense_gemm/tile_plan.hpp"
#include "gpu/kernels/w4a16/w4a16.hpp"
#include "tests/support/catch.hpp"

using namespace octavo::gpu;

namespace {

struct shape {
  int outputs, inputs, multiprocessors;
};

constexpr shape shapes[] = {{8192, 2048, 108}, {6144, 512, 108},   {512, 2048, 72},
                            {1024, 4096, 132}, {28672, 8192, 132}, {200, 1152, 3}};

/// Does what the covering counts need serve every number of tokens?
template <class Needs>
void check_covered(int tokens_max, int dense_tokens_min, const Needs& needs) {
  gemm_needs reserved;
  for (const int tokens : covering_token_counts(tokens_max, dense_tokens_min)) {
    REQUIRE(tokens >= 1);
    REQUIRE(tokens <= tokens_max);
    reserved |= needs(tokens);
  }
  for (int tokens = 1; tokens <= tokens_max; ++tokens) {
    CAPTURE(tokens);
    REQUIRE(needs(tokens).bytes <= reserved.bytes);
    REQUIRE(needs(tokens).counters <= reserved.counters);
  }
}

}  // namespace

TEST_CASE("a workspace for covering numbers of tokens serves all numbers") {
  for (const shape& s : shapes) {
    CAPTURE(s.outputs, s.inputs, s.multiprocessors);
    for (const int tokens_max : {1, 5, 16, 30, 700, 1000}) {
      for (const int tile_rows_max : {32, 64}) {
        check_covered(tokens_max, 256, [&](int tokens) {
          return plan_tiles(tokens, s.outputs, s.inputs, 128, s.multiprocessors, false,
                            tile_rows_max)
              .needs();
        });
      }
      for (const int dense_tokens_min : {1, 3, 6, 70, 256, 9999}) {
        check_covered(tokens_max, dense_tokens_min, [&](int tokens) {
          lane_product p;
          p.weights.outputs = s.outputs;
          p.weights.inputs = p.weights.source_inputs = p.weights.group = s.inputs;
          const std::int32_t ordered = 0;
          p.weights.order = &ordered;
          p.tokens = tokens;
          p.multiprocessors = s.multiprocessors;
          p.dense_tokens_min = dense_tokens_min;
          return w4a16_needs(p);
        });
      }
    }
  }
}
