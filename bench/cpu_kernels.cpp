// How fast the CPU kernels run on one core: products by format, instruction set
// and number of activation rows, and attention, in the same run as the ceilings they
// are judged by: a streaming read of memory and the integer units' own rate.
// Time is the thread's own, so that other work on the machine disturbs less; each
// figure is the median of chunks. Ratios are what to compare between machines.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/kernels/attention.hpp"
#include "cpu/kernels/matmul.hpp"
#include "cpu/kernels/test_matrices.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Of calling work(0) … work(chunks - 1), the median.
double median_seconds(std::size_t chunks, const std::function<void(std::size_t)>& work) {
  std::vector<double> times;
  for (std::size_t i = 0; i < chunks; ++i) {
    const double start = thread_seconds();
    work(i);
    times.push_back(thread_seconds() - start);
  }
  std::nth_element(times.begin(), times.begin() + chunks / 2, times.end());
  return times[chunks / 2];
}

volatile std::int64_t sink;

#if defined(__x86_64__)
[[gnu::target("avx2")]] std::int64_t read_all(const std::int64_t* memory, std::size_t count) {
  __m256i sums[4] = {};
  for (std::size_t i = 0; i + 16 <= count; i += 16) {
    __builtin_prefetch(memory + i + 512);
    __builtin_prefetch(memory + i + 520);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto* at = reinterpret_cast<const __m256i*>(memory + i + 4 * j);
      sums[j] = _mm256_add_epi64(sums[j], _mm256_loadu_si256(at));
    }
  }
  alignas(32) std::int64_t lanes[4];
  std::int64_t total = 0;
  for (const auto& sum : sums) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
    total += lanes[0];
  }
  return total;
}
#else
std::int64_t read_all(const std::int64_t* memory, std::size_t count) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) total += memory[i];
  return total;
}
#endif

/// Bytes per second of one core reading a gigabyte, in chunks of 8 MiB.
double read_bandwidth() {
  constexpr std::size_t chunk = std::size_t{1} << 20U;
  constexpr std::size_t chunks = 128;
  const std::vector<std::int64_t> memory(chunk * chunks, 1);
  const double seconds = median_seconds(2 * chunks, [&](std::size_t i) {
    sink = read_all(memory.data() + i % chunks * chunk, chunk);
  });
  return static_cast<double>(chunk * 8) / seconds;
}

#if defined(__x86_64__)
constexpr int rate_loops = 20'000;

/// Byte multiplies and 16-bit adds on registers only: 10 x 64 operations a loop.
[[gnu::target("avx2")]] void avx2_work(std::size_t) {
  __m256i sums[10] = {};
  __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(5);
  for (int i = 0; i < rate_loops; ++i) {
#pragma GCC unroll 10
    for (auto& sum : sums) {
      // Keeps the compiler from computing the product once.
      asm volatile("" : "+x"(a));
      sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b));
    }
  }
  alignas(32) std::int64_t lanes[4];
#pragma GCC unroll 10
  for (const auto& sum : sums) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
    sink = lanes[0];
  }
}

/// 12 x 128 operations a loop.
[[gnu::target("avx512f,avx512bw,avx512vnni")]] void vnni_work(std::size_t) {
  __m512i sums[12] = {};
  const __m512i a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(5);
  for (int i = 0; i < rate_loops; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
  }
  alignas(64) std::int64_t lanes[8];
#pragma GCC unroll 12
  for (const auto& sum : sums) {
    _mm512_store_si512(lanes, sum);
    sink = lanes[0];
  }
}
#endif

/// 0 where there is no such ceiling.
double integer_rate(isa kind) {
#if defined(__x86_64__)
  if (kind == isa::avx2) return 10.0 * 64 * rate_loops / median_seconds(50, avx2_work);
  if (kind == isa::avx512_vnni) return 12.0 * 128 * rate_loops / median_seconds(50, vnni_work);
#endif
  return 0;
}

struct options {
  std::size_t rows = 32768;
  std::size_t columns = 4096;
  std::string isa;
  std::string type;
};

/// Rows are taken in ranges of 32 tiles, as a thread pool would; the weights are
/// larger than the caches.
void bench_products(const options& o, const kernel_table& kernels, double bandwidth) {
  const double ceiling = integer_rate(kernels.kind);
  std::printf("\n%s: integer ceiling %.0f GOP/s\n", std::string(to_string(kernels.kind)).c_str(),
              ceiling / 1e9);
  std::printf("%-5s %4s %9s %9s %9s %9s\n", "type", "M", "GOP/s", "of rate", "GB/s", "of read");
  for (const model::element_type type : packable_types()) {
    const std::string name(model::info(type).name);
    if (!o.type.empty() && o.type != name) continue;
    const random_matrix stored = make_random_matrix(type, static_cast<std::int64_t>(o.rows),
                                                    static_cast<std::int64_t>(o.columns), 1);
    const packed_weights w(stored.matrix, name);
    const std::size_t tiles = std::min<std::size_t>(32, w.row_tiles());
    const std::size_t ranges = w.row_tiles() / tiles;
    for (const std::size_t m : {1U, 2U, 4U, 8U, 16U, 32U, 512U}) {
      if (m == 512 && kernels.kind == isa::portable) continue;
      const auto values = make_random_rows(m, o.columns, 2);
      quantized_rows x;
      x.resize(m, o.columns);
      for (std::size_t i = 0; i < m; ++i) x.quantize(i, values.data() + i * o.columns, kernels);
      std::vector<float> y(m * o.rows);
      const double seconds = median_seconds(m == 512 ? 4 : ranges, [&](std::size_t i) {
        if (w.takes_floats()) {
          matmul(w, float_rows{values.data(), m, o.columns}, i * tiles, tiles, y.data(), o.rows,
                 kernels);
        } else {
          matmul(w, x, i * tiles, tiles, y.data(), o.rows, kernels);
        }
      });
      const double share = static_cast<double>(tiles) / static_cast<double>(w.row_tiles());
      const double operations = 2.0 * share * static_cast<double>(m * o.rows * o.columns) / seconds;
      const double bytes = share * static_cast<double>(w.bytes()) / seconds;
      std::printf("%-5s %4zu %9.1f %9.2f %9.2f %9.2f\n", name.c_str(), m, operations / 1e9,
                  ceiling > 0 ? operations / ceiling : 0, bytes / 1e9, bytes / bandwidth);
    }
  }
}

/// One key-value head with `group` query heads, after `context` tokens.
void bench_attention(const kernel_table& kernels, std::size_t dim, std::size_t group,
                     std::size_t context, std::size_t tokens) {
  std::vector<std::uint16_t> pool(context * dim * 2, 0x3000);
  std::vector<kv_page> pages;
  for (std::size_t i = 0; i < context / 16; ++i) {
    pages.push_back({pool.data() + i * 32 * dim, pool.data() + (i * 32 + 16) * dim});
  }
  const auto q = make_random_rows(tokens, group * dim, 1);
  std::vector<float> out(q.size());
  const attention_shape shape{dim, group, 0.1F, 0, 0};
  const attention_work work{.q = q.data(),
                            .q_stride = group * dim,
                            .first_position = context - tokens,
                            .tokens = tokens,
                            .pages = pages.data(),
                            .first_page = 0,
                            .kv_head = 0,
                            .out = out.data(),
                            .out_stride = group * dim};
  const double seconds = median_seconds(9, [&](std::size_t) { attend(shape, work, kernels); });
  const double operations = 4.0 * static_cast<double>(tokens * group * context * dim) / seconds;
  std::printf(
      "attention, head %3zu, group %zu, context %4zu, %3zu tokens: %6.1f GFLOP/s, KV %5.1f GB/s\n",
      dim, group, context, tokens, operations / 1e9,
      static_cast<double>(pool.size() * 2) / seconds / 1e9);
}

void bench_quantizing(const kernel_table& kernels) {
  constexpr std::size_t columns = 4096;
  const auto values = make_random_rows(1, columns, 2);
  quantized_rows x;
  x.resize(1, columns);
  const double seconds =
      median_seconds(20, [&](std::size_t) { x.quantize(0, values.data(), kernels); });
  std::printf("quantizing activations: %.2f G values/s\n",
              static_cast<double>(columns) / seconds / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--rows") o.rows = std::strtoul(argv[i + 1], nullptr, 10);
    if (flag == "--columns") o.columns = std::strtoul(argv[i + 1], nullptr, 10);
    if (flag == "--isa") o.isa = argv[i + 1];
    if (flag == "--type") o.type = argv[i + 1];
  }
  const double bandwidth = read_bandwidth();
  std::printf("W %zu x %zu, one core; streaming read %.1f GB/s\n", o.rows, o.columns,
              bandwidth / 1e9);
  for (const isa kind : available_isas()) {
    if (!o.isa.empty() && o.isa != to_string(kind)) continue;
    bench_products(o, kernels_for(kind), bandwidth);
    bench_quantizing(kernels_for(kind));
    for (const std::size_t group : {1U, 3U, 4U, 8U}) {
      bench_attention(kernels_for(kind), 64, group, 2048, 1);
      bench_attention(kernels_for(kind), 128, group, 2048, 1);
    }
    bench_attention(kernels_for(kind), 64, 3, 512, 64);
    bench_attention(kernels_for(kind), 128, 4, 2048, 64);
  }
  return 0;
}
