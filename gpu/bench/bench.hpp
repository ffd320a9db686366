// What the benches of kernels share: repeated measurement on a device, operands, and the
// results as JSON. Each kernel has its bench beside it, gpu/kernels/NAME/NAME.bench.cpp, which
// registers itself:
//
//   void bench(bench_context& c) { … c.results.push_back(…); }
//   const bench_registration registered("rms_norm", bench);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
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
  /// How many times the operations of bf16 tensor cores those for its operands can do.
  double rate = 1;
};

struct bench_context {
  device_info device;
  stream on;
  /// Every bench once over tiny shapes, on the emulator too: its times mean nothing.
  bool smoke = false;
  std::vector<bench_result> results;

  /// What to measure: `full`, or for a smoke run `tiny`.
  template <class T>
  [[nodiscard]] T either(T full, T tiny) const {
    return smoke ? tiny : full;
  }
};

using bench_function = void (*)(bench_context& c);

/// Of all kernels, by name.
std::map<std::string, bench_function>& all_benches();

struct bench_registration {
  bench_registration(const char* kernel, bench_function run) { all_benches()[kernel] = run; }
};

/// More than any cache: operands that are used in turn take as much together, so that
/// each call finds its own in memory, as the layers of a model do.
inline constexpr std::size_t turn_bytes = std::size_t{512} << 20;

/// How many copies of operands of `bytes` to use in turn.
inline int turns_for(const bench_context& c, std::size_t bytes) {
  return static_cast<int>(std::clamp<std::size_t>(turn_bytes / std::max<std::size_t>(bytes, 1), 1,
                                                  c.either<std::size_t>(64, 2)));
}

/// Microseconds of one call: the median of several graphs that hold calls
/// queue(0) … queue(turns - 1), so that the host's launches do not count.
template <class Queue>
double microseconds_of(const bench_context& c, stream& on, int turns, Queue&& queue) {
  const int repeats = c.either(9, 1);
  for (int turn = 0; turn < turns; ++turn) queue(turn);
  on.synchronize();
  graph calls = capture(on, [&] {
    for (int turn = 0; turn < turns; ++turn) queue(turn);
  });
  calls.launch(on);
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    event from(true), to(true);
    from.record(on);
    calls.launch(on);
    to.record(on);
    on.synchronize();
    times.push_back(1000 * event::elapsed_ms(from, to) / turns);
  }
  std::ranges::nth_element(times, times.begin() + repeats / 2);
  return times[static_cast<std::size_t>(repeats / 2)];
}

template <class Queue>
double microseconds_of(bench_context& c, int turns, Queue&& queue) {
  return microseconds_of(c, c.on, turns, queue);
}

/// Numbers between -1 and 1 of a 16-bit type, the same 2^20 again and again.
device_array<std::uint16_t> random_operand(stream& on, std::size_t n, dtype type);

/// The same of float32.
device_array<float> random_floats(stream& on, std::size_t n);

/// Bytes of any value.
device_array<std::byte> random_bytes(stream& on, std::size_t n);

/// Numbers from 0 to `below` - 1.
device_array<std::int32_t> random_ids(stream& on, std::size_t n, int below);

/// Reads `n` bytes (a multiple of 16) as fast as the device can.
void read_all(stream& on, const std::byte* from, std::size_t n, float* sink, int multiprocessors);

/// What the device can do: {"read_bytes_per_s", "copy_bytes_per_s", "bf16_flops_per_s"}.
nlohmann::json measure_ceilings(bench_context& c);

}  // namespace octavo::gpu
