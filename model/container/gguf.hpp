// Reads the structure of a GGUF file (versions 2 and 3, little-endian): metadata
// and where each tensor lies. Nothing is copied; the bytes must outlive it.
//
//   mapped_file file("model.gguf");
//   gguf_file gguf = parse_gguf(file.bytes(), file.path());
//   const gguf_tensor* q = gguf.find("blk.0.attn_q.weight");
//
// The file is taken to be hostile: every count, length, size and offset is
// checked against what the file can hold before it is used. Tensors of block
// types that cannot be computed with are listed all the same; using them is
// what fails.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/container/gguf_metadata.hpp"
#include "model/quantized/element_type.hpp"

namespace octavo::model {

struct gguf_tensor {
  std::string name;
  element_type type{};
  /// As stored: the first dimension is the contiguous one. A matrix of N rows
  /// of K elements has dims {K, N}. One to four of them, all positive.
  std::vector<std::int64_t> dims;
  std::span<const std::byte> bytes;
};

struct gguf_file {
  std::uint32_t version = 0;
  /// Bytes; a power of two.
  std::uint64_t alignment = 0;
  /// Where the data section begins, in bytes from the start of the file.
  std::uint64_t data_offset = 0;
  gguf_metadata metadata{""};
  /// In the order of the file.
  std::vector<gguf_tensor> tensors;
  std::map<std::string, std::size_t, std::less<>> tensor_index;

  /// nullptr where there is no such tensor.
  [[nodiscard]] const gguf_tensor* find(std::string_view name) const;
};

/// `where` names the file in messages. Throws input_error naming the field that
/// is malformed, truncated, out of range or inconsistent.
[[nodiscard]] gguf_file parse_gguf(std::span<const std::byte> bytes, std::string_view where);

}  // namespace octavo::model
