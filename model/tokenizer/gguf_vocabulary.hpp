// What a GGUF file says about its tokenizer (keys tokenizer.ggml.*), independent of
// who read the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace octavo::model {

/// The views must stay valid while a tokenizer is built, and no longer. A key that
/// the file lacks stays empty.
struct gguf_vocabulary {
  std::string model;  ///< "llama" (SentencePiece-style) or "gpt2" (byte-level)
  std::string pre;    ///< names the split pattern; needed where the model is "gpt2"
  std::vector<std::string_view> tokens;
  std::vector<float> scores;              ///< needed where the model is "llama"
  std::vector<std::int32_t> token_types;  ///< 1 normal ... 6 byte
  std::vector<std::string_view> merges;   ///< "left right"; needed where the model is "gpt2"
  std::optional<token_id> bos_token_id;
  std::optional<token_id> eos_token_id;
  std::optional<token_id> eot_token_id;
  std::optional<token_id> eom_token_id;
  std::optional<token_id> unknown_token_id;
  std::optional<token_id> padding_token_id;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_space_prefix;
};

}  // namespace octavo::model
