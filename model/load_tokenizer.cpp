// The tokenizer of a checkpoint: see load_tokenizer.hpp.
#include "model/load_tokenizer.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>

#include "core/error.hpp"

namespace octavo::model {
namespace {

constexpr std::int64_t token_max = std::numeric_limits<token_id>::max();

std::optional<token_id> token_at(const gguf_metadata& metadata, std::string_view key) {
  if (!metadata.has(key)) return std::nullopt;
  return static_cast<token_id>(metadata.whole(key, token_max));
}

std::optional<bool> flag_at(const gguf_metadata& metadata, std::string_view key) {
  if (!metadata.has(key)) return std::nullopt;
  return metadata.flag_or(key, false);
}

tokenizer from_gguf_file(const gguf_metadata& metadata) {
  gguf_vocabulary words;
  words.model = metadata.text("tokenizer.ggml.model");
  words.pre = metadata.text_or("tokenizer.ggml.pre", "");
  words.tokens = metadata.strings("tokenizer.ggml.tokens");
  if (metadata.has("tokenizer.ggml.scores"))
    words.scores = metadata.floats("tokenizer.ggml.scores");
  if (metadata.has("tokenizer.ggml.token_type")) {
    for (const std::int64_t type : metadata.integers("tokenizer.ggml.token_type")) {
      words.token_types.push_back(static_cast<std::int32_t>(type));
    }
  }
  if (metadata.has("tokenizer.ggml.merges"))
    words.merges = metadata.strings("tokenizer.ggml.merges");
  words.bos_token_id = token_at(metadata, "tokenizer.ggml.bos_token_id");
  words.eos_token_id = token_at(metadata, "tokenizer.ggml.eos_token_id");
  words.eot_token_id = token_at(metadata, "tokenizer.ggml.eot_token_id");
  words.eom_token_id = token_at(metadata, "tokenizer.ggml.eom_token_id");
  words.unknown_token_id = token_at(metadata, "tokenizer.ggml.unknown_token_id");
  words.padding_token_id = token_at(metadata, "tokenizer.ggml.padding_token_id");
  words.add_bos_token = flag_at(metadata, "tokenizer.ggml.add_bos_token");
  words.add_eos_token = flag_at(metadata, "tokenizer.ggml.add_eos_token");
  words.add_space_prefix = flag_at(metadata, "tokenizer.ggml.add_space_prefix");
  return tokenizer::from_gguf(words);
}

std::string text_of(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

tokenizer load_tokenizer(const checkpoint& source) {
  if (source.gguf() != nullptr) return from_gguf_file(source.gguf()->metadata);
  const std::string path = source.companion("tokenizer.json");
  if (path.empty()) throw input_error(source.path() + ": has no tokenizer.json");
  return tokenizer::from_json(text_of(path), text_of(source.companion("tokenizer_config.json")));
}

std::vector<token_id> end_tokens_of(const checkpoint& source, const tokenizer& words) {
  std::vector<token_id> ends(words.end_tokens().begin(), words.end_tokens().end());
  for (const std::int64_t token : source.generation().stop_tokens) {
    ends.push_back(static_cast<token_id>(token));
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

}  // namespace octavo::model
