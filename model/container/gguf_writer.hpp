// Tests only: writes GGUF files, sound ones and ones that break a rule.
//
//   gguf_writer w;
//   w.text("general.architecture", "llama").number<std::uint32_t>("llama.block_count", 4, 1);
//   w.tensor("output_norm.weight", 0, {4}, 16);
//   std::string file = w.file();
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/container/gguf.hpp"

namespace octavo::model {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class gguf_writer {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  template <class Number>
  static std::string raw(Number value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string raw_text(std::string_view text) {
    return raw<std::uint64_t>(text.size()) + std::string(text);
  }

  /// Any key with a type number and value bytes as given.
  gguf_writer& key(std::string_view name, std::uint32_t type, const std::string& value) {
    metadata_ += raw_text(name) + raw(type) + value;
    ++keys_;
    return *this;
  }
  gguf_writer& u32(std::string_view name, std::uint32_t value) { return key(name, 4, raw(value)); }
  gguf_writer& f32(std::string_view name, float value) { return key(name, 6, raw(value)); }
  gguf_writer& text(std::string_view name, std::string_view value) {
    return key(name, 8, raw_text(value));
  }
  gguf_writer& texts(std::string_view name, const std::vector<std::string>& values) {
    std::string bytes = raw<std::uint32_t>(8) + raw<std::uint64_t>(values.size());
    for (const std::string& value : values) bytes += raw_text(value);
    return key(name, 9, bytes);
  }
  template <class Number>
  gguf_writer& numbers(std::string_view name, std::uint32_t type,
                       const std::vector<Number>& values) {
    std::string bytes = raw(type) + raw<std::uint64_t>(values.size());
    for (const Number value : values) bytes += raw(value);
    return key(name, 9, bytes);
  }

  /// A tensor of given bytes behind those before it, padded to the alignment.
  gguf_writer& tensor(std::string_view name, std::uint32_t type,
                      const std::vector<std::uint64_t>& dims, const std::string& bytes) {
    info(name, type, dims, data_.size());
    data_ += bytes;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
  /// The description of a tensor at an offset as given, without data.
  gguf_writer& info(std::string_view name, std::uint32_t type,
                    const std::vector<std::uint64_t>& dims, std::uint64_t offset) {
    infos_ += raw_text(name) + raw<std::uint32_t>(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t size : dims) infos_ += raw(size);
    infos_ += raw(type) + raw(offset);
    ++tensors_;
    return *this;
  }

  [[nodiscard]] std::string file() const {
    std::string bytes = "GGUF" + raw(version) + raw(tensors_) + raw(keys_) + metadata_ + infos_;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
    return bytes + data_;
  }

 private:
  std::string metadata_;
  std::string infos_;
  std::string data_;
  std::uint64_t keys_ = 0;
  std::uint64_t tensors_ = 0;
};

}  // namespace octavo::model
