// Shares of a tensor-parallel group, worked out by hand.
#include "model/sharding.hpp"

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

model_config config_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t mlp,
                       std::int64_t vocabulary) {
  model_config config;
  config.name = "tiny";
  config.heads = heads;
  config.kv_heads = kv_heads;
  config.head_dim = 10;
  config.hidden_size = 40;
  config.layers = 3;
  config.intermediate_size = mlp;
  config.vocab_size = vocabulary;
  return config;
}

}  // namespace

TEST_CASE("ranks hold whole heads, equal parts of the MLP, and runs of token ids") {
  const auto config = config_of(8, 4, 48, 101);
  const rank_share third = share_of(config, 4, 2);
  CHECK(third.query == index_range{40, 60});
  CHECK(third.kv == index_range{20, 30});
  CHECK(third.mlp == index_range{24, 36});
  // 101 / 4, rounded up: 26, 26, 26 and 23.
  CHECK(third.vocabulary == index_range{52, 78});
  CHECK(share_of(config, 4, 3).vocabulary == index_range{78, 101});
  const rank_share whole = share_of(config, 1, 0);
  CHECK(whole.query == index_range{0, 80});
  CHECK(whole.kv == index_range{0, 40});
  CHECK(whole.vocabulary == index_range{0, 101});
}

TEST_CASE("ranks that share a key-value head each have a copy of the one their queries ask") {
  const auto config = config_of(8, 2, 48, 64);
  // Queries 0 .. 3 ask head 0, 4 .. 7 head 1; each of 8 ranks has one query.
  for (int rank = 0; rank < 8; ++rank) {
    const std::int64_t head = rank / 4;
    CHECK(share_of(config, 8, rank).kv == index_range{10 * head, 10 * head + 10});
  }
  CHECK(share_of(config_of(8, 1, 48, 64), 4, 3).kv == index_range{0, 10});
}

TEST_CASE("a rank's keys and values are those that memory is reckoned for") {
  for (const std::int64_t kv_heads : {1, 2, 4, 8}) {
    const auto config = config_of(8, kv_heads, 48, 64);
    for (const int tp : {1, 2, 4, 8}) {
      for (int rank = 0; rank < tp; ++rank) {
        CHECK(share_of(config, tp, rank).kv.size() * 2 * 2 ==
              kv_bytes_per_token_layer(config, kv_dtype::fp16, tp));
      }
    }
  }
}

TEST_CASE("what does not divide is refused with the arithmetic and the sizes that do") {
  const auto refused = [](const model_config& config, int tp, const std::string& message) {
    CHECK_THROWS_AS(share_of(config, tp, 0), infeasible_error);
    CHECK_THROWS_WITH(share_of(config, tp, 0), ContainsSubstring(message));
  };
  refused(config_of(9, 3, 90, 64), 2,
          "9 query heads do not divide by tensor parallel size 2 (9 = 2 x 4 + 1); allowed sizes: "
          "1, 3, 9");
  refused(config_of(12, 6, 48, 64), 4,
          "6 key-value heads do not divide by tensor parallel size 4 (6 = 4 x 1 + 2); allowed "
          "sizes: 1, 2, 3, 6, 12");
  refused(config_of(8, 4, 50, 64), 4, "50 MLP columns do not divide by tensor parallel size 4");
  refused(config_of(8, 8, 48, 9), 8,
          "a vocabulary of 9 tokens, 2 to each rank, leaves none to the last of tensor parallel "
          "size 8");
}

TEST_CASE("a bias is cut like its outputs, and one that is not there stays so") {
  CHECK(slice_vector({1, 2, 3, 4, 5}, {2, 4}) == std::vector<float>{3, 4});
  CHECK(slice_vector({}, {2, 4}).empty());
}
