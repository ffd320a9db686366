// Paged attention at the shapes whose times on other software are known.
#include <cmath>
#include <numeric>
#include <random>

#include "gpu/bench/bench.hpp"
#include "gpu/kernels/paged_attention/paged_attention.hpp"

namespace octavo::gpu {
namespace {

constexpr int head_dim = 128;

struct attention_case {
  const char* name;
  int batch, context, rows;
};

/// Time of `rows` new tokens for each of `batch` sequences after `context` tokens.
void measure(bench_context& c, const attention_case& of, dtype kv_type) {
  const int heads = c.either(32, 4);
  const int kv_heads = c.either(8, 1);
  attention_shape shape;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = head_dim;
  shape.kv_type = kv_type;
  const int length = of.context + of.rows;
  const int blocks = (length + kv_page_tokens - 1) / kv_page_tokens;
  std::vector<attention_sequence> sequences(static_cast<std::size_t>(of.batch));
  for (int i = 0; i < of.batch; ++i) {
    sequences[static_cast<std::size_t>(i)] = {i * of.rows, of.rows, of.context, i * blocks, 0};
  }
  const int rows = of.batch * of.rows;
  attention_planner planner(shape, {of.batch, rows, c.device.multiprocessors});
  pinned_array<std::byte> plan_host(planner.capacity().bytes());
  paged_attention_run run;
  run.launch = planner.plan(sequences, {plan_host.data(), plan_host.size()});
  device_array<std::byte> plan(plan_host.size());
  plan.upload(c.on, plan_host.span());

  const std::size_t pages = static_cast<std::size_t>(of.batch) * blocks;
  const std::size_t pool_bytes =
      pages * static_cast<std::size_t>(kv_heads) * kv_page_tokens * head_dim * bytes_of(kv_type);
  const int turns = turns_for(c, 2 * pool_bytes);
  std::vector<std::int32_t> ids(pages);
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), std::mt19937(9));
  device_array<std::int32_t> tables(pages);
  tables.upload(c.on, ids);
  // Any bits do for keys and values: the time does not depend on them.
  const auto numbers = random_operand(c.on, 2 * pool_bytes * turns / 2, dtype::float16);
  const auto* pools = reinterpret_cast<const std::byte*>(numbers.data());
  const std::size_t width = static_cast<std::size_t>(heads) * head_dim;
  const auto queries = random_operand(c.on, rows * width, dtype::bfloat16);
  device_array<std::uint16_t> out(rows * width);
  device_array<std::byte> scratch(
      std::max<std::size_t>(16, workspace_bytes(shape, planner.capacity())));

  run.shape = shape;
  run.capacity = planner.capacity();
  run.plan = plan.data();
  run.tables = tables.data();
  run.queries = queries.data();
  run.query_stride = run.out_stride = static_cast<std::int64_t>(width);
  run.out = out.data();
  run.workspace = scratch.data();
  run.scale = 1 / std::sqrt(static_cast<float>(head_dim));
  bench_result r{of.name,
                 {{"batch", of.batch},
                  {"tokens", length},
                  {"rows", of.rows},
                  {"heads", heads},
                  {"kv_heads", kv_heads},
                  {"head_dim", head_dim},
                  {"kv_type", name_of(kv_type)}}};
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    run.keys = pools + 2 * pool_bytes * static_cast<std::size_t>(turn);
    run.values = static_cast<const std::byte*>(run.keys) + pool_bytes;
    paged_attention(run, c.on);
  });
  const double seen = of.rows * (of.context + (of.rows + 1) / 2.0);
  r.flops = 4.0 * of.batch * heads * head_dim * seen;
  r.bytes = 2.0 * of.batch * length * kv_heads * head_dim * static_cast<double>(bytes_of(kv_type)) +
            4.0 * static_cast<double>(rows * width);
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const std::vector<int> batches{1, 8, 64};
  for (const int batch : c.either(batches, {2})) {
    for (const dtype kv : {dtype::bfloat16, dtype::float8_e4m3}) {
      measure(c, {"decode_attention", batch, c.either(4095, 31), 1}, kv);
    }
  }
  const std::vector<int> prompts{512, 4096};
  for (const int rows : c.either(prompts, {24})) {
    measure(c, {"prefill_attention", 1, 0, rows}, dtype::bfloat16);
  }
}

const bench_registration registered("paged_attention", bench);

}  // namespace
}  // namespace octavo::gpu
