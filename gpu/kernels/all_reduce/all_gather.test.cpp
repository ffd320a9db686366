// Parts of all ranks, each a thread and a stream, laid side by side on each.
#include "gpu/kernels/all_reduce/all_gather.hpp"

#include "core/error.hpp"
#include "gpu/kernels/all_reduce/test_ranks.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

struct gather_case {
  int ranks;
  std::size_t count;
  std::size_t stride;
};

/// All parts twice, call after call without a wait, the second time negated.
void check(const gather_case& c) {
  std::vector<std::vector<float>> parts;
  std::vector<float> expected(static_cast<std::size_t>(c.ranks) * c.stride, 0);
  for (int r = 0; r < c.ranks; ++r) {
    parts.push_back(random_rows<float>(c.count, static_cast<unsigned>(r + 1)));
    std::ranges::copy(parts.back(), expected.begin() + static_cast<std::ptrdiff_t>(c.stride) * r);
  }
  simt::for_each_schedule([&](const char* name) {
    INFO(name << ", ranks " << c.ranks << ", " << c.count << " of " << c.stride);
    const test_ranks peers(c.ranks, 2, c.count * sizeof(float));
    std::vector<std::vector<float>> got(2 * static_cast<std::size_t>(c.ranks));
    peers.run([&](const peer_group& g) {
      stream s;
      const auto rank = static_cast<std::size_t>(g.rank);
      auto negated = parts[rank];
      for (float& v : negated) v = -v;
      const device_array<float> inputs[] = {on_device(s, parts[rank]), on_device(s, negated)};
      device_array<float> outputs[2];
      for (int call = 0; call < 2; ++call) {
        outputs[call] = device_array<float>(expected.size());
        outputs[call].fill_zero(s);
        all_gather(g, {c.count, inputs[call].data(), outputs[call].data(), c.stride}, s);
      }
      got[2 * rank] = on_host(s, outputs[0]);
      got[2 * rank + 1] = on_host(s, outputs[1]);
    });
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (i % 2 == 1) {
        for (float& v : got[i]) v = -v;
      }
      CHECK(got[i] == expected);
    }
  });
}

}  // namespace

TEST_CASE("all ranks get the parts of all, by rank") {
  check({1, 8, 8});
  check({2, 4100, 4200});
  check({3, 5, 7});
}

TEST_CASE("all_gather refuses more than its group has room for, and parts that overlap") {
  const test_ranks peers(2, 1, 64);
  stream s;
  float x = 0;
  CHECK_THROWS_WITH(all_gather(peers.of(0), {17, &x, &x, 17}, s),
                    "all_gather: a rank's part in bytes is 68; allowed are up to 64, the group's "
                    "payload_bytes");
  CHECK_THROWS_WITH(all_gather(peers.of(0), {16, &x, &x, 15}, s),
                    "all_gather: output_stride is 15; allowed are count and more");
}
