// Operands of benches, and what the device can do at most: see bench.hpp.
#include <random>

#include "gpu/bench/bench.hpp"
#include "gpu/kernels/dense_gemm/dense_gemm.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::gpu {
namespace {

constexpr std::size_t piece_elements = std::size_t{1} << 20;

/// Fills an array with copies of what `piece` holds.
template <class T>
device_array<T> repeated(stream& on, std::size_t n, const std::vector<T>& piece) {
  device_array<T> made(n);
  for (std::size_t at = 0; at < n; at += piece.size()) {
    copy_to_device(on, made.data() + at, piece.data(), std::min(piece.size(), n - at) * sizeof(T));
  }
  on.synchronize();
  return made;
}

double bf16_flops_per_s(bench_context& c) {
  const int side = c.either(8192, 64);
  const auto elements = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  const auto x = random_operand(c.on, elements, dtype::bfloat16);
  const auto w = random_operand(c.on, elements, dtype::bfloat16);
  device_array<std::uint16_t> y(elements);
  dense_product p;
  p.activations = x.data();
  p.weights = w.data();
  p.output = y.data();
  p.tokens = p.outputs = p.inputs = side;
  p.multiprocessors = c.device.multiprocessors;
  const gemm_needs needs = dense_gemm_needs(p);
  device_array<std::byte> scratch(needs.bytes);
  device_array<int> counters(static_cast<std::size_t>(needs.counters));
  if (counters.size() > 0) counters.fill_zero(c.on);
  p.workspace = {scratch.data(), scratch.size(), counters.data(), needs.counters};
  const double us = microseconds_of(c, 4, [&](int) { dense_gemm(c.on, p); });
  return 2.0 * side * side * side / us * 1e6;
}

}  // namespace

device_array<std::uint16_t> random_operand(stream& on, std::size_t n, dtype type) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> unit(-1, 1);
  std::vector<std::uint16_t> piece(std::min(n, piece_elements));
  for (auto& bits : piece) {
    const float value = unit(random);
    bits = type == dtype::float16 ? model::float_to_half(value) : model::float_to_bfloat(value);
  }
  return repeated(on, n, piece);
}

device_array<float> random_floats(stream& on, std::size_t n) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> unit(-1, 1);
  std::vector<float> piece(std::min(n, piece_elements));
  for (float& value : piece) value = unit(random);
  return repeated(on, n, piece);
}

device_array<std::int32_t> random_ids(stream& on, std::size_t n, int below) {
  std::mt19937 random(9);
  std::vector<std::int32_t> piece(std::min(n, piece_elements));
  for (auto& id : piece) id = static_cast<std::int32_t>(random() % static_cast<unsigned>(below));
  return repeated(on, n, piece);
}

device_array<std::byte> random_bytes(stream& on, std::size_t n) {
  std::mt19937 random(8);
  std::vector<std::byte> piece(std::min(n, piece_elements));
  for (auto& byte : piece) byte = static_cast<std::byte>(random() & 0xFF);
  return repeated(on, n, piece);
}

nlohmann::json measure_ceilings(bench_context& c) {
  const std::size_t bytes = c.either(std::size_t{2} << 30, std::size_t{1} << 16);
  device_array<std::byte> from = random_bytes(c.on, bytes);
  device_array<std::byte> to(bytes);
  device_array<float> sink(1);
  const double read_us = microseconds_of(c, 4, [&](int) {
    read_all(c.on, from.data(), bytes, sink.data(), c.device.multiprocessors);
  });
  const double copy_us =
      microseconds_of(c, 4, [&](int) { copy_on_device(c.on, to.data(), from.data(), bytes); });
  return {{"read_bytes_per_s", static_cast<double>(bytes) / read_us * 1e6},
          {"copy_bytes_per_s", 2 * static_cast<double>(bytes) / copy_us * 1e6},
          {"bf16_flops_per_s", bf16_flops_per_s(c)}};
}

}  // namespace octavo::gpu
