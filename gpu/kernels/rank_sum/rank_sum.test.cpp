// Sums over ranks against the same sums on the host.
#include "gpu/kernels/rank_sum/rank_sum.hpp"

#include "core/error.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

TEST_CASE("a sum over ranks adds in rank order, whatever the count") {
  const int ranks = GENERATE(1, 2, 3, 8);
  const std::size_t count = GENERATE(1U, 255U, 1000U);
  simt::for_each_schedule([&](const char* name) {
    CAPTURE(name, ranks, count);
    stream s;
    std::vector<std::vector<float>> parts;
    std::vector<device_array<float>> there;
    rank_sum_params p;
    p.ranks = ranks;
    p.count = static_cast<std::int64_t>(count);
    for (int rank = 0; rank < ranks; ++rank) {
      parts.push_back(random_rows<float>(count, static_cast<unsigned>(rank + 1), 100));
      there.push_back(on_device(s, parts.back()));
      p.parts[rank] = there.back().data();
    }
    device_array<float> sum(count);
    p.output = sum.data();
    rank_sum(p, s);
    std::vector<float> expected = parts[0];
    for (int rank = 1; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < count; ++i) {
        expected[i] += parts[static_cast<std::size_t>(rank)][i];
      }
    }
    CHECK(on_host(s, sum) == expected);
  });
}

TEST_CASE("a sum over ranks refuses more ranks than it can read") {
  stream s;
  rank_sum_params p;
  p.ranks = rank_sum_max + 1;
  CHECK_THROWS_WITH(rank_sum(p, s), Catch::Matchers::ContainsSubstring("ranks"));
}
