// Rotary embedding and the write of keys and values, of a prompt's rows at an 8B model's
// shape.
#include <numeric>

#include "gpu/bench/bench.hpp"
#include "gpu/kernels/rope_kv_write/rope_kv_write.hpp"

namespace octavo::gpu {
namespace {

constexpr int head_dim = 128, pairs = head_dim / 2;

void measure(bench_context& c, int rows, dtype kv_type) {
  const int heads = c.either(32, 4);
  const int kv_heads = c.either(8, 2);
  const std::int64_t query_width = std::int64_t{heads} * head_dim;
  const std::int64_t key_width = std::int64_t{kv_heads} * head_dim;
  const auto count = static_cast<std::size_t>(rows);
  const auto pages = static_cast<std::size_t>((rows + kv_page_tokens - 1) / kv_page_tokens);
  const std::size_t page_bytes =
      static_cast<std::size_t>(key_width) * kv_page_tokens * bytes_of(kv_type);
  // Queries come and go in 16 bits, keys and values come so; each pair of a row has two angles.
  const std::size_t row_bytes = 4 * static_cast<std::size_t>(query_width) +
                                2 * static_cast<std::size_t>(key_width) * (2 + bytes_of(kv_type)) +
                                std::size_t{8} * pairs;
  const std::size_t bytes = count * row_bytes;
  const int turns = turns_for(c, bytes);
  const auto each = static_cast<std::size_t>(turns);
  auto queries = random_operand(c.on, count * query_width * each, dtype::bfloat16);
  const auto keys = random_operand(c.on, count * key_width * each, dtype::bfloat16);
  const auto angles = random_floats(c.on, count * pairs);
  device_array<std::byte> key_pages(pages * page_bytes * each);
  device_array<std::byte> value_pages(pages * page_bytes * each);
  std::vector<std::int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  device_array<std::int32_t> counted(count), zeros(count);
  counted.upload(c.on, numbers);
  zeros.fill_zero(c.on);

  rope_kv_write_run run;
  run.kv_type = kv_type;
  run.rows = rows;
  run.heads = heads;
  run.kv_heads = kv_heads;
  run.head_dim = head_dim;
  run.query_stride = run.queries_out_stride = query_width;
  run.key_stride = run.value_stride = key_width;
  run.rope.pairs = pairs;
  run.rope.cosines = run.rope.sines = angles.data();
  run.rope.table_positions = rows;
  run.positions = counted.data();
  run.sequence_of_row = run.sequence_tables = zeros.data();
  run.tables = counted.data();
  bench_result r{"rope_kv_write",
                 {{"rows", rows},
                  {"heads", heads},
                  {"kv_heads", kv_heads},
                  {"head_dim", head_dim},
                  {"kv_type", name_of(kv_type)}}};
  r.bytes = static_cast<double>(bytes);
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    const auto at = static_cast<std::size_t>(turn);
    run.queries = run.queries_out = queries.data() + at * count * query_width;
    run.keys = run.values = keys.data() + at * count * key_width;
    run.key_pages = key_pages.data() + at * pages * page_bytes;
    run.value_pages = value_pages.data() + at * pages * page_bytes;
    rope_kv_write(run, c.on);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const std::vector<int> rows{1, 64, 2048};
  for (const int count : c.either(rows, {3})) {
    for (const dtype kv : {dtype::bfloat16, dtype::float8_e4m3}) measure(c, count, kv);
  }
}

const bench_registration registered("rope_kv_write", bench);

}  // namespace
}  // namespace octavo::gpu
