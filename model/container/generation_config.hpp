// What a model's makers recommend for generation: when to stop and how to
// sample. From generation_config.json, or from GGUF metadata (stops only).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/container/gguf_metadata.hpp"

namespace octavo::model {

struct generation_config {
  /// Tokens that end a sequence; empty where the file names none.
  std::vector<std::int64_t> stop_tokens;
  std::optional<std::int64_t> bos_token;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<std::int64_t> top_k;
  std::optional<double> repetition_penalty;
};

/// Reads the text of a generation_config.json or of a config.json, which share
/// these fields. Throws input_error naming the field that is ill-typed.
[[nodiscard]] generation_config parse_generation_config(std::string_view text,
                                                        const std::string& where);

/// End-of-sequence, end-of-turn and end-of-message tokens of GGUF metadata.
[[nodiscard]] generation_config gguf_generation_config(const gguf_metadata& metadata);

}  // namespace octavo::model
