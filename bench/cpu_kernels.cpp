// How fast the CPU kernels run on one core: products by format, instruction set
// and number of activation rows, in the same run as the two ceilings they are
// judged by, a streaming read of memory and the integer units' own rate. Each
// figure is the best of several; ratios are what to compare between machines.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/kernels/matmul.hpp"
#include "cpu/kernels/test_matrices.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

double best_seconds(int repeats, const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

volatile std::int64_t sink;

/// Bytes per second of one core reading memory far larger than its caches.
double read_bandwidth(const std::vector<std::int64_t>& memory) {
  const double seconds = best_seconds(4, [&] {
    std::int64_t sums[8] = {};
    for (std::size_t i = 0; i + 8 <= memory.size(); i += 8) {
      for (std::size_t j = 0; j < 8; ++j) sums[j] += memory[i + j];
    }
    std::int64_t total = 0;
    for (const std::int64_t sum : sums) total += sum;
    sink = total;
  });
  return static_cast<double>(memory.size() * 8) / seconds;
}

#if defined(__x86_64__)
/// Operations per second of the byte multiply and add pair, on registers only.
[[gnu::target("avx2")]] double avx2_rate() {
  constexpr int loops = 2'000'000;
  const double seconds = best_seconds(5, [] [[gnu::target("avx2")]] {
    __m256i sums[8];
    for (auto& sum : sums) sum = _mm256_setzero_si256();
    __m256i a = _mm256_set1_epi8(3);
    const __m256i b = _mm256_set1_epi8(5);
    for (int i = 0; i < loops; ++i) {
      // Keeps the compiler from hoisting the product.
      asm volatile("" : "+x"(a));
      for (auto& sum : sums) sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b));
      asm volatile("" : "+x"(sums[0]), "+x"(sums[1]), "+x"(sums[2]), "+x"(sums[3]), "+x"(sums[4]),
                        "+x"(sums[5]), "+x"(sums[6]), "+x"(sums[7]));
    }
    sink = _mm256_extract_epi64(sums[0], 0);
  });
  return 8.0 * 64 * loops / seconds;
}

[[gnu::target("avx512f,avx512bw,avx512vnni")]] double vnni_rate() {
  constexpr int loops = 2'000'000;
  const double seconds = best_seconds(5, [] [[gnu::target("avx512f,avx512bw,avx512vnni")]] {
    __m512i sums[12];
    for (auto& sum : sums) sum = _mm512_setzero_si512();
    __m512i a = _mm512_set1_epi8(3);
    const __m512i b = _mm512_set1_epi8(5);
    for (int i = 0; i < loops; ++i) {
      asm volatile("" : "+v"(a));
      for (auto& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
    }
    alignas(64) std::int64_t lanes[8];
    for (const auto& sum : sums) {
      _mm512_store_si512(lanes, sum);
      sink = lanes[0];
    }
  });
  return 12.0 * 128 * loops / seconds;
}
#endif

/// 0 where there is no such ceiling.
double integer_rate(isa kind) {
#if defined(__x86_64__)
  if (kind == isa::avx2) return avx2_rate();
  if (kind == isa::avx512_vnni) return vnni_rate();
#endif
  return 0;
}

struct options {
  std::size_t rows = 4096;
  std::size_t columns = 4096;
  std::string isa;
  std::string type;
};

void bench_products(const options& o, const kernel_table& kernels, double bandwidth) {
  const double ceiling = integer_rate(kernels.kind);
  std::printf("\n%s: integer ceiling %.0f GOP/s\n", std::string(to_string(kernels.kind)).c_str(),
              ceiling / 1e9);
  std::printf("%-5s %4s %9s %9s %9s %9s\n", "type", "M", "GOP/s", "of rate", "GB/s", "of read");
  for (const model::element_type type : packable_types()) {
    const std::string name(model::info(type).name);
    if (!o.type.empty() && o.type != name) continue;
    const random_matrix stored =
        make_random_matrix(type, static_cast<std::int64_t>(o.rows),
                           static_cast<std::int64_t>(o.columns), 1);
    const packed_weights w(stored.matrix, name);
    for (const std::size_t m : {1U, 2U, 4U, 8U, 16U, 32U, 512U}) {
      if (m == 512 && kernels.kind == isa::portable) continue;
      const auto values = make_random_rows(m, o.columns, 2);
      quantized_rows x;
      x.resize(m, o.columns);
      for (std::size_t i = 0; i < m; ++i) x.quantize(i, values.data() + i * o.columns, kernels);
      std::vector<float> y(m * o.rows);
      const double seconds = best_seconds(m > 32 ? 3 : 7, [&] {
        if (w.takes_floats()) {
          matmul(w, float_rows{values.data(), m, o.columns}, 0, w.row_tiles(), y.data(), o.rows,
                 kernels);
        } else {
          matmul(w, x, 0, w.row_tiles(), y.data(), o.rows, kernels);
        }
      });
      const double operations = 2.0 * static_cast<double>(m * o.rows * o.columns) / seconds;
      const double bytes = static_cast<double>(w.bytes()) / seconds;
      std::printf("%-5s %4zu %9.1f %9.2f %9.2f %9.2f\n", name.c_str(), m, operations / 1e9,
                  ceiling > 0 ? operations / ceiling : 0, bytes / 1e9, bytes / bandwidth);
    }
  }
}

void bench_quantizing(const kernel_table& kernels) {
  constexpr std::size_t columns = 4096;
  const auto values = make_random_rows(1, columns, 2);
  quantized_rows x;
  x.resize(1, columns);
  const double seconds = best_seconds(20, [&] { x.quantize(0, values.data(), kernels); });
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
  const std::vector<std::int64_t> memory(std::size_t{256} << 17U, 1);
  const double bandwidth = read_bandwidth(memory);
  std::printf("W %zu x %zu, one core; streaming read %.1f GB/s\n", o.rows, o.columns,
              bandwidth / 1e9);
  for (const isa kind : available_isas()) {
    if (!o.isa.empty() && o.isa != to_string(kind)) continue;
    bench_products(o, kernels_for(kind), bandwidth);
    bench_quantizing(kernels_for(kind));
  }
  return 0;
}
