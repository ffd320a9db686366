// Kernel rooflines. The shared constants were fitted together over A100, H100
// and H200 tables; see bench/cost_vs_measured.cpp for what they achieve.
#include "sim/cost/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/kv_arithmetic.hpp"

namespace octavo::sim {
namespace {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Bytes per microsecond.
double bandwidth(const gpu_spec& gpu) {
  return gpu.bandwidth / 1e6;
}

/// Output tiles, with their speed relative to the largest.
struct tile {
  std::int64_t rows;
  std::int64_t columns;
  double speed;
};

constexpr std::array tiles{tile{128, 256, 1.0}, tile{128, 128, 0.95}, tile{64, 128, 0.87},
                           tile{64, 64, 0.8},   tile{32, 128, 0.7},   tile{16, 128, 0.6}};

/// The time to fill a tile's pipeline, as extra columns of k.
constexpr double tile_prologue_k = 400;
/// A split of k is at least this long.
constexpr std::int64_t split_k_min = 2048;
/// How sharply memory and compute bounds meet.
constexpr double gemm_sharpness = 3.5;

double gemm_compute_us(const gpu_spec& gpu, const gemm_rates& rates, std::int64_t m, std::int64_t n,
                       std::int64_t k) {
  const double per_processor = rates.operations_per_us / static_cast<double>(gpu.processors);
  double best = 0;
  for (const tile& t : tiles) {
    const std::int64_t count = divide_up(m, t.rows) * divide_up(n, t.columns);
    const std::int64_t waves = divide_up(count, gpu.processors);
    const std::int64_t split =
        std::max<std::int64_t>(1, std::min(gpu.processors / count, k / split_k_min));
    const double depth = static_cast<double>(k) / static_cast<double>(split) + tile_prologue_k;
    const double us =
        static_cast<double>(waves * 2 * t.rows * t.columns) * depth / (per_processor * t.speed);
    best = best == 0 ? us : std::min(best, us);
  }
  return best;
}

}  // namespace

gemm_rates rates_for(const gpu_spec& gpu, model::weight_format format) {
  const gpu_efficiency& e = gpu.efficiency;
  const auto wide = gemm_rates{format, 2, gpu.fp16_flops / 1e6 * e.gemm_compute, e.gemm_floor_us};
  const double peak = format == model::weight_format::fp8    ? gpu.fp8_flops
                      : format == model::weight_format::int8 ? gpu.int8_ops
                                                             : 0;
  if (peak == 0) return wide;
  return {format, 1, peak / 1e6 * e.gemm_compute_8bit, e.gemm_floor_8bit_us};
}

double gemm_us(const gpu_spec& gpu, const gemm_rates& rates, std::int64_t m, std::int64_t n,
               std::int64_t k) {
  if (m == 0) return 0;
  const double bytes = static_cast<double>(model::matrix_bytes(k, n, rates.format)) +
                       static_cast<double>(m * k) * rates.activation_bytes +
                       static_cast<double>(2 * m * n);
  const double memory = bytes / (bandwidth(gpu) * gpu.efficiency.gemm_bandwidth);
  const double compute = gemm_compute_us(gpu, rates, m, n, k);
  return rates.floor_us +
         std::pow(std::pow(memory, gemm_sharpness) + std::pow(compute, gemm_sharpness),
                  1 / gemm_sharpness);
}

double decode_attention_us(const gpu_spec& gpu, const attention_shape& shape,
                           std::int64_t sequences, std::int64_t context) {
  if (sequences == 0) return 0;
  const gpu_efficiency& e = gpu.efficiency;
  const auto count = static_cast<double>(sequences);
  double mean = static_cast<double>(context) / count;
  if (shape.window > 0) mean = std::min(mean, static_cast<double>(shape.window));
  // A page of 16 tokens is the least that a sequence reads.
  constexpr double page_tokens = 16;
  const double token_bytes =
      static_cast<double>(2 * shape.kv_heads * shape.head_dim * shape.kv_element_bytes);
  const double memory =
      count * (mean + page_tokens) * token_bytes / (bandwidth(gpu) * e.decode_bandwidth);
  const double items = count * static_cast<double>(shape.kv_heads) * e.decode_item_us /
                       static_cast<double>(gpu.processors);
  // Long contexts are cut in parts whose results are merged by a second kernel.
  const double merge = e.decode_split_us * std::min(1.0, mean / 1024);
  return e.decode_floor_us + std::sqrt(memory * memory + items * items) + merge;
}

namespace {

/// Pairs (query, key) of a causal chunk, queries rounded to half a tile.
double causal_pairs(const attention_shape& shape, const prefill_chunk& chunk) {
  constexpr double half_tile = 64;
  const auto tokens = static_cast<double>(chunk.tokens);
  const auto context = static_cast<double>(chunk.context);
  const double all = tokens * (context + tokens / 2 + half_tile);
  if (shape.window == 0) return all;
  return std::min(all, tokens * (static_cast<double>(shape.window) + half_tile));
}

}  // namespace

double prefill_attention_us(const gpu_spec& gpu, const attention_shape& shape,
                            std::span<const prefill_chunk> chunks) {
  constexpr double sharpness = 1.3;
  constexpr double tile_rows = 128;
  // The last tile's walk over all keys overlaps the others' by about a half.
  constexpr double walk_share = 0.48;
  // Writing outputs and reading queries, share of the bandwidth.
  constexpr double stream_share = 0.40;
  double pairs = 0;
  double tokens = 0;
  double longest = 0;
  for (const prefill_chunk& chunk : chunks) {
    if (chunk.tokens == 0) continue;
    auto keys = static_cast<double>(chunk.context + chunk.tokens);
    if (shape.window > 0) keys = std::min(keys, static_cast<double>(shape.window) + tile_rows);
    pairs += causal_pairs(shape, chunk);
    tokens += static_cast<double>(chunk.tokens);
    longest = std::max(longest, keys);
  }
  if (tokens == 0) return 0;
  const double rate = gpu.fp16_flops / 1e6 * gpu.efficiency.prefill_compute;
  const auto depth = static_cast<double>(4 * shape.head_dim);
  const double compute = pairs * depth * static_cast<double>(shape.heads) / rate;
  const double walk = walk_share * tile_rows * (longest + tile_rows) * depth *
                      static_cast<double>(gpu.processors) / rate;
  const double stream = tokens * static_cast<double>((shape.heads + shape.kv_heads) * 2) *
                        static_cast<double>(2 * shape.head_dim) / (bandwidth(gpu) * stream_share);
  return gpu.efficiency.prefill_floor_us +
         std::pow(
             std::pow(compute, sharpness) + std::pow(walk, sharpness) + std::pow(stream, sharpness),
             1 / sharpness);
}

double elementwise_us(const gpu_spec& gpu, double bytes) {
  const double floor = gpu.efficiency.elementwise_floor_us;
  const double memory = bytes / (bandwidth(gpu) * gpu.efficiency.elementwise_bandwidth);
  return std::sqrt(floor * floor + memory * memory);
}

double all_reduce_us(const gpu_spec& gpu, int gpus, double bytes) {
  if (gpus < 2) return 0;
  constexpr double direct_limit_bytes = 8.0 * 1024 * 1024;
  const auto n = static_cast<double>(gpus);
  const double link = gpu.link_bandwidth / 1e6;
  const double latency = gpu.link_latency_us;
  const double moved = 2 * (n - 1) / n * bytes;
  const double ring = gpu.efficiency.ring_latency_us + moved / (link * gpu.efficiency.ring_link);
  if (bytes >= direct_limit_bytes) return ring;
  const double direct = link * gpu.efficiency.allreduce_link;
  const double one_shot = latency + (n - 1) * bytes / direct;
  const double two_shot = 2 * latency + moved / direct;
  return std::min({one_shot, two_shot, ring});
}

}  // namespace octavo::sim
