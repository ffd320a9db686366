// Reads generation defaults; see the header.
#include "model/container/generation_config.hpp"

#include <algorithm>

#include "model/json_fields.hpp"
#include "model/strict_json.hpp"

namespace octavo::model {
namespace {

using nlohmann::json;

constexpr std::int64_t token_max = 100'000'000;

std::int64_t token(const json_fields& file, const std::string& key, const json& value) {
  const bool sound = value.is_number_unsigned() &&
                     value.get<std::uint64_t>() <= static_cast<std::uint64_t>(token_max);
  if (!sound) file.fail(key, "holds " + value.dump() + "; a token id is expected");
  return value.get<std::int64_t>();
}

std::optional<double> number(const json_fields& file, const std::string& key) {
  if (!file.has(key)) return std::nullopt;
  return file.number(key);
}

}  // namespace

generation_config parse_generation_config(std::string_view text, const std::string& where) {
  const json document = parse_strict_json(text, where, 64);
  if (!document.is_object()) throw input_error(where + ": a JSON object is expected");
  const json_fields file(document, where);
  generation_config config;
  if (file.has("eos_token_id")) {
    const json& stops = file.at("eos_token_id");
    if (stops.is_array()) {
      for (const json& stop : stops) {
        config.stop_tokens.push_back(token(file, "eos_token_id", stop));
      }
    } else {
      config.stop_tokens.push_back(token(file, "eos_token_id", stops));
    }
  }
  if (file.has("bos_token_id") && !file.at("bos_token_id").is_array()) {
    config.bos_token = token(file, "bos_token_id", file.at("bos_token_id"));
  }
  config.temperature = number(file, "temperature");
  config.top_p = number(file, "top_p");
  config.repetition_penalty = number(file, "repetition_penalty");
  if (file.has("top_k")) config.top_k = token(file, "top_k", file.at("top_k"));
  return config;
}

generation_config gguf_generation_config(const gguf_metadata& metadata) {
  generation_config config;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (!metadata.has(key)) continue;
    const std::int64_t stop = metadata.whole(key, token_max);
    const auto& known = config.stop_tokens;
    if (std::find(known.begin(), known.end(), stop) == known.end()) {
      config.stop_tokens.push_back(stop);
    }
  }
  constexpr std::string_view bos = "tokenizer.ggml.bos_token_id";
  if (metadata.has(bos)) config.bos_token = metadata.whole(bos, token_max);
  return config;
}

}  // namespace octavo::model
