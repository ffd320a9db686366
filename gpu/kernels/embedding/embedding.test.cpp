// Embedding rows against the table itself.
#include "gpu/kernels/embedding/embedding.hpp"

#include "core/error.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

template <class T, class Out>
void check(std::size_t width, float factor) {
  constexpr int begin = 10;
  constexpr int end = 15;
  const std::vector<int> ids{10, 14, 12, 9, 15, -1, 12};
  const auto table = random_rows<T>((end - begin) * width, 1);
  std::vector<double> expected(ids.size() * width);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (ids[row] < begin || ids[row] >= end) continue;
    for (std::size_t i = 0; i < width; ++i) {
      const auto at = static_cast<std::size_t>(ids[row] - begin) * width + i;
      expected[row * width + i] = static_cast<double>(static_cast<float>(table[at])) * factor;
    }
  }
  simt::for_each_schedule([&](const char* name) {
    INFO(name << ", width " << width);
    stream s;
    auto d_ids = on_device(s, ids);
    auto d_table = on_device(s, table);
    device_array<Out> output(expected.size());
    embedding_params p;
    p.type = dtype_of<T>;
    p.rows = static_cast<int>(ids.size());
    p.width = static_cast<int>(width);
    p.ids = d_ids.data();
    p.table = d_table.data();
    p.begin = begin;
    p.end = end;
    p.scale = factor;
    p.output = output.data();
    p.output_type = dtype_of<Out>;
    embed(p, s);
    CHECK(worst_error(on_host(s, output), expected, 1e-30) <= 1.001 * rounding_of<Out>);
  });
}

}  // namespace

TEST_CASE("embedding copies and scales the rows of its part, and gives zeros for others") {
  for (const std::size_t width : {1, 7, 64, 130, 1100}) {
    check<__half, float>(width, 1);
    check<__half, __half>(width, 1);
    check<__nv_bfloat16, float>(width, 33.94112549F);
    check<__nv_bfloat16, __nv_bfloat16>(width, 33.94112549F);
  }
}

TEST_CASE("embedding takes a row's token from where the device chose it") {
  const std::vector<int> ids{3, -1, 0, -1};
  const std::vector<int> sources{-1, 2, -1, 0};
  const std::vector<int> chosen{1, 9, 4};
  const std::vector<int> meant{3, 4, 0, 1};
  const auto table = random_rows<__half>(5 * 8, 2);
  simt::for_each_schedule([&](const char* name) {
    INFO(name);
    stream s;
    auto d_ids = on_device(s, ids);
    auto d_sources = on_device(s, sources);
    auto d_chosen = on_device(s, chosen);
    auto d_table = on_device(s, table);
    device_array<float> output(meant.size() * 8);
    embedding_params p;
    p.type = dtype::float16;
    p.rows = 4;
    p.width = 8;
    p.ids = d_ids.data();
    p.sources = d_sources.data();
    p.chosen = d_chosen.data();
    p.table = d_table.data();
    p.end = 5;
    p.output = output.data();
    embed(p, s);
    const auto rows = on_host(s, output);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<std::size_t>(meant[i / 8]) * 8 + i % 8;
      CHECK(rows[i] == static_cast<float>(table[at]));
    }
  });
}

TEST_CASE("embedding refuses an end before its begin") {
  stream s;
  embedding_params p;
  p.rows = 1;
  p.width = 8;
  p.begin = 5;
  p.end = 4;
  CHECK_THROWS_WITH(embed(p, s), "embedding: end is 4; allowed are 5 to 2147483647");
}
