// Gathered rows against the rows themselves.
#include "gpu/kernels/row_gather/row_gather.hpp"

#include "core/error.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

TEST_CASE("row_gather copies rows in the order of their ids, and gives zeros for no row") {
  for (const std::size_t width : {1, 8, 77, 4096}) {
    const std::vector<int> ids{3, 0, -1, 3};
    std::vector<unsigned short> input(4 * width);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<unsigned short>(i + 1);
    std::vector<unsigned short> expected;
    for (const int id : ids) {
      for (std::size_t i = 0; i < width; ++i) {
        expected.push_back(id < 0 ? 0 : input[static_cast<std::size_t>(id) * width + i]);
      }
    }
    simt::for_each_schedule([&](const char* name) {
      INFO(name << ", width " << width);
      stream s;
      auto d_ids = on_device(s, ids);
      auto d_input = on_device(s, input);
      device_array<unsigned short> output(expected.size());
      gather_rows({4, width * 2, d_ids.data(), d_input.data(), output.data()}, s);
      CHECK(on_host(s, output) == expected);
    });
  }
}

TEST_CASE("row_gather refuses rows of odd bytes") {
  stream s;
  CHECK_THROWS_WITH(gather_rows({1, 3, nullptr, nullptr, nullptr}, s),
                    "row_gather: row_bytes is 3; allowed are even numbers");
}
