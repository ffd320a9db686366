// Reads the structure of a safetensors file: a JSON header that says where each
// tensor lies. Nothing is copied; the bytes must outlive what is returned.
//
//   mapped_file file("model.safetensors");
//   for (const stored_tensor& t : parse_safetensors(file.bytes(), file.path())) …
//
// The file is taken to be hostile. Its data must be exactly what the header
// describes, without holes, overlaps or a missing end, so that a file cut short
// is refused rather than read as zeros.
// Format: https://github.com/huggingface/safetensors
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantized/stored_tensor.hpp"

namespace octavo::model {

/// Tensors in the order of their data. Throws input_error naming file, tensor
/// and field.
[[nodiscard]] std::vector<stored_tensor> parse_safetensors(std::span<const std::byte> bytes,
                                                           std::string_view where);

/// Which shard holds each tensor.
using shard_map = std::map<std::string, std::string, std::less<>>;

/// Reads the text of a model.safetensors.index.json. Shard names are plain file
/// names: anything that could lead out of the folder is refused.
[[nodiscard]] shard_map parse_shard_index(std::string_view text, const std::string& where);

}  // namespace octavo::model
