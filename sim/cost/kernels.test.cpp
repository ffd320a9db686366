// Kernel times: their limits worked out by hand, and their order.
#include "sim/cost/kernels.hpp"

#include <array>
#include <vector>

#include "sim/catalogue/catalogue.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;
using model::weight_format;

TEST_CASE("a matrix times few rows takes the time of reading the weights") {
  // 8192 x 8192 in fp16 on an H100: 134.2 MB at 3,350 GB/s is 40.1 us; measured
  // kernels need between 46 and 54 us.
  const gpu_spec gpu = find_gpu("h100");
  const double us = gemm_us(gpu, rates_for(gpu, weight_format::fp16), 16, 8192, 8192);
  CHECK(us > 44);
  CHECK(us < 58);
}

TEST_CASE("a matrix times many rows takes the time of multiplying") {
  // 2 x 8192^3 operations at 312 TFLOPS are 3,524 us; an A100 reaches 80..95 %.
  const gpu_spec gpu = find_gpu("a100-80g");
  const double us = gemm_us(gpu, rates_for(gpu, weight_format::fp16), 8192, 8192, 8192);
  CHECK(us > 3524 / 0.95);
  CHECK(us < 3524 / 0.78);
}

TEST_CASE("matrix times never fall as a side grows") {
  for (const char* name : {"a100-80g", "h100", "rtx-4090", "cpu-generic"}) {
    const gpu_spec gpu = find_gpu(name);
    for (const auto format : {weight_format::fp16, weight_format::fp8, weight_format::int4}) {
      const gemm_rates rates = rates_for(gpu, format);
      double before = 0;
      for (std::int64_t m = 1; m <= 3000; ++m) {
        const double us = gemm_us(gpu, rates, m, 4096, 4096);
        REQUIRE(us >= before);
        before = us;
      }
    }
  }
}

TEST_CASE("four-bit weights help where reading bounds, and not where multiplying does") {
  const gpu_spec gpu = find_gpu("a100-80g");
  const gemm_rates wide = rates_for(gpu, weight_format::fp16);
  const gemm_rates narrow = rates_for(gpu, weight_format::int4);
  const double few = gemm_us(gpu, wide, 8, 28672, 8192) / gemm_us(gpu, narrow, 8, 28672, 8192);
  const double many =
      gemm_us(gpu, wide, 4096, 28672, 8192) / gemm_us(gpu, narrow, 4096, 28672, 8192);
  // At most 16 / 4.16 bits = 3.85 times.
  CHECK(few > 2.5);
  CHECK(few < 3.85);
  CHECK(many == Catch::Approx(1).epsilon(0.02));
}

TEST_CASE("eight-bit formats multiply at their own peak only where the GPU has one") {
  const gpu_spec ampere = find_gpu("a100-80g");
  const gpu_spec hopper = find_gpu("h100");
  CHECK(rates_for(ampere, weight_format::fp8).operations_per_us ==
        rates_for(ampere, weight_format::fp16).operations_per_us);
  CHECK(rates_for(ampere, weight_format::fp8).activation_bytes == 2);
  CHECK(rates_for(hopper, weight_format::fp8).activation_bytes == 1);
}

TEST_CASE("decode attention takes the time of reading the KV cache") {
  // 64 sequences x 4,096 tokens x 4 KiB (8 heads of 128, fp16) = 1.07 GB on an
  // H100: 320 us at the peak of 3,350 GB/s.
  const gpu_spec gpu = find_gpu("h100");
  const attention_shape shape{32, 8, 128, 2, 0};
  const double us = decode_attention_us(gpu, shape, 64, 64 * 4096);
  CHECK(us > 320);
  CHECK(us < 420);
  const attention_shape narrow{32, 8, 128, 1, 0};
  CHECK(decode_attention_us(gpu, narrow, 64, 64 * 4096) < 0.6 * us);
}

TEST_CASE("a window caps what decode attention reads") {
  const gpu_spec gpu = find_gpu("h100");
  const attention_shape windowed{32, 16, 128, 2, 1024};
  CHECK(decode_attention_us(gpu, windowed, 8, 8 * 32768) ==
        decode_attention_us(gpu, windowed, 8, 8 * 1024));
  CHECK(decode_attention_us(gpu, windowed, 0, 0) == 0);
}

TEST_CASE("prefill attention grows with the square of a prompt and with its context") {
  const gpu_spec gpu = find_gpu("a100-80g");
  const attention_shape shape{32, 8, 128, 2, 0};
  const auto us = [&](std::int64_t tokens, std::int64_t context) {
    const prefill_chunk chunk{tokens, context};
    return prefill_attention_us(gpu, shape, {&chunk, 1});
  };
  // 2 x 128 x 32 x 16384^2 operations at 312 TFLOPS: 7,048 us at the peak.
  CHECK(us(16384, 0) > 7048 / 0.75);
  CHECK(us(16384, 0) < 7048 / 0.45);
  CHECK(us(16384, 0) / us(8192, 0) == Catch::Approx(4).epsilon(0.1));
  CHECK(us(512, 8192) > us(512, 4096));
  CHECK(us(512, 4096) > us(512, 0));
}

TEST_CASE("a short chunk walks its whole context on few processors") {
  // Measured on an RTX 4090 with 32 heads and 16,384 tokens of context: 16 rows and
  // 64 rows take the same 520 us, many times their share of 512 rows' 1,036 us.
  const gpu_spec gpu = find_gpu("rtx-4090");
  const attention_shape shape{32, 8, 128, 2, 0};
  const prefill_chunk few{16, 16384};
  const prefill_chunk many{512, 16384};
  CHECK(prefill_attention_us(gpu, shape, {&few, 1}) == Catch::Approx(520).epsilon(0.35));
  CHECK(prefill_attention_us(gpu, shape, {&many, 1}) == Catch::Approx(1036).epsilon(0.35));
}

TEST_CASE("prefill chunks of one step share a launch") {
  const gpu_spec gpu = find_gpu("h100");
  const attention_shape shape{32, 8, 128, 2, 0};
  const std::array two{prefill_chunk{512, 0}, prefill_chunk{512, 0}};
  const double both = prefill_attention_us(gpu, shape, two);
  const double one = prefill_attention_us(gpu, shape, {two.data(), 1});
  CHECK(both > one);
  CHECK(both < 2 * one);
  CHECK(prefill_attention_us(gpu, shape, {}) == 0);
}

TEST_CASE("an all-reduce costs its latency when small and its bytes when large") {
  const gpu_spec gpu = find_gpu("h100");
  CHECK(all_reduce_us(gpu, 1, 1e6) == 0);
  CHECK(all_reduce_us(gpu, 2, 1024) == Catch::Approx(gpu.link_latency_us).epsilon(0.02));
  // 512 MB over 8 GPUs move 7/4 of it: 2,088 us at 450 GB/s.
  const double large = all_reduce_us(gpu, 8, 536870912);
  CHECK(large > 2088);
  CHECK(large < 2088 / 0.5);
  double before = 0;
  for (double bytes = 256; bytes < 1e9; bytes *= 1.5) {
    const double us = all_reduce_us(gpu, 8, bytes);
    REQUIRE(us >= before);
    before = us;
  }
}
