// Tensors of tests: any element type on the host, as doubles and as stored bytes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "gpu/runtime/memory.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

class test_tensor {
 public:
  /// All elements are NaN at first.
  test_tensor(dtype type, std::size_t n) : type_(type), bytes_(n * bytes_of(type)) {
    for (std::size_t i = 0; i < n; ++i) set(i, std::numeric_limits<float>::quiet_NaN());
  }

  std::size_t size() const { return bytes_.size() / bytes_of(type_); }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  double at(std::size_t i) const {
    switch (type_) {
      case dtype::float16:
        return static_cast<double>(static_cast<float>(read<__half>(i)));
      case dtype::bfloat16:
        return static_cast<double>(static_cast<float>(read<__nv_bfloat16>(i)));
      case dtype::float8_e4m3:
        return static_cast<double>(static_cast<float>(read<__nv_fp8_e4m3>(i)));
      case dtype::float32:
        return static_cast<double>(read<float>(i));
    }
    return 0;
  }

  /// Rounds to the nearest element.
  void set(std::size_t i, float value) {
    switch (type_) {
      case dtype::float16:
        return write(i, __half(value));
      case dtype::bfloat16:
        return write(i, __nv_bfloat16(value));
      case dtype::float8_e4m3:
        return write(i, __nv_fp8_e4m3(value));
      case dtype::float32:
        return write(i, value);
    }
  }

  template <class Random>
  void fill(Random& random, float largest) {
    std::uniform_real_distribution<float> values(-largest, largest);
    for (std::size_t i = 0; i < size(); ++i) set(i, values(random));
  }

  device_array<std::byte> upload(stream& s) const {
    device_array<std::byte> device(bytes_.size());
    device.upload(s, bytes_);
    return device;
  }
  void download(stream& s, const device_array<std::byte>& device) {
    device.download(s, bytes_);
    s.synchronize();
  }

 private:
  template <class T>
  T read(std::size_t i) const {
    T value;
    std::memcpy(static_cast<void*>(&value), bytes_.data() + i * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void write(std::size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof(T), static_cast<const void*>(&value), sizeof(T));
  }

  dtype type_;
  std::vector<std::byte> bytes_;
};

}  // namespace octavo::gpu
