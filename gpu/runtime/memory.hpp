// Arrays in device memory, and in pinned host memory that copies to and from
// devices can use while the host goes on.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "gpu/runtime/device.hpp"
#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

/// Memory of the current device; throws device_error where it does not suffice.
/// Emulated memory starts as NaN; a device's own holds anything.
void* allocate_device_bytes(std::size_t bytes);
void free_device_bytes(void* address) noexcept;

void* allocate_pinned_bytes(std::size_t bytes);
void free_pinned_bytes(void* address) noexcept;

/// n elements of T in device memory. Moves, but does not copy. The owner makes sure
/// that no queued work uses it when it is destroyed.
template <class T>
class device_array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  device_array() = default;
  explicit device_array(std::size_t n)
      : data_(n > 0 ? static_cast<T*>(allocate_device_bytes(n * sizeof(T))) : nullptr), size_(n) {}
  device_array(device_array&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  device_array& operator=(device_array&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~device_array() {
    if (data_ != nullptr) free_device_bytes(data_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  /// Copies values to the first elements.
  void upload(stream& s, std::span<const T> values) {
    require(values.size(), "upload");
    copy_to_device(s, data_, values.data(), values.size_bytes());
  }

  /// Copies the first elements; there after s.synchronize().
  void download(stream& s, std::span<T> values) const {
    require(values.size(), "download");
    copy_to_host(s, values.data(), data_, values.size_bytes());
  }

  void fill_zero(stream& s) { fill_bytes(s, data_, 0, bytes()); }

 private:
  void require(std::size_t n, const char* what) const {
    if (n <= size_) return;
    throw device_error(
        std::string("device_array::") + what, current_device(),
        std::to_string(n) + " elements given for an array of " + std::to_string(size_), "");
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// n elements of T in pinned host memory, which devices can read as well.
template <class T>
class pinned_array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  pinned_array() = default;
  explicit pinned_array(std::size_t n)
      : data_(n > 0 ? static_cast<T*>(allocate_pinned_bytes(n * sizeof(T))) : nullptr), size_(n) {}
  pinned_array(pinned_array&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  pinned_array& operator=(pinned_array&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~pinned_array() {
    if (data_ != nullptr) free_pinned_bytes(data_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace octavo::gpu
