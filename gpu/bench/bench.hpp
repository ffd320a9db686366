// What the benches of kernels share: repeated measurement on a device, operands, and the
// results as JSON. For hardware only; gpu/check.sh runs them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gpu/runtime/device.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// One measured call and the least work that it could do.
struct bench_result {
  std::string kernel;
  nlohmann::json shape;
  double microseconds = 0;
  double bytes = 0;  ///< that must be moved
  double flops = 0;
};

struct bench_context {
  device_info device;
  stream on;
  std::vector<bench_result> results;
};

/// More than any cache: operands that are used in turn take as much together, so that
/// each call finds its own in memory, as the layers of a model do.
inline constexpr std::size_t turn_bytes = std::size_t{512} << 20;

/// How many copies of operands of `bytes` to use in turn.
inline int turns_for(std::size_t bytes) {
  return static_cast<int>(
      std::clamp<std::size_t>(turn_bytes / std::max<std::size_t>(bytes, 1), 1, 64));
}

/// Microseconds of one call: the median of several graphs that hold calls
/// queue(0) … queue(turns - 1), so that the host's launches do not count.
template <class Queue>
double microseconds_of(stream& on, int turns, Queue&& queue) {
  constexpr int repeats = 9;
  for (int turn = 0; turn < turns; ++turn) queue(turn);
  on.synchronize();
  graph calls = capture(on, [&] {
    for (int turn = 0; turn < turns; ++turn) queue(turn);
  });
  calls.launch(on);
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    event from, to;
    from.record(on);
    calls.launch(on);
    to.record(on);
    on.synchronize();
    times.push_back(1000 * event::elapsed_ms(from, to) / turns);
  }
  std::ranges::nth_element(times, times.begin() + repeats / 2);
  return times[repeats / 2];
}

/// Numbers between -1 and 1 of a 16-bit type, the same 2^20 again and again.
device_array<std::uint16_t> random_operand(stream& on, std::size_t n, dtype type);

/// Bytes of any value.
device_array<std::byte> random_bytes(stream& on, std::size_t n);

/// Reads `n` bytes (a multiple of 16) as fast as the device can.
void read_all(stream& on, const std::byte* from, std::size_t n, float* sink, int multiprocessors);

/// What the device can do: {"read_bytes_per_s", "copy_bytes_per_s", "bf16_flops_per_s"}.
nlohmann::json measure_ceilings(bench_context& c);

void bench_decode_attention(bench_context& c);
void bench_prefill_attention(bench_context& c);
void bench_dense_gemm(bench_context& c);
void bench_w4a16(bench_context& c);
void bench_fp8_gemm(bench_context& c);
void bench_all_reduce(bench_context& c);

}  // namespace octavo::gpu
