// Reads tokenizer_config.json. Such files hold numbers beyond 64 bits (an unlimited
// model_max_length), which not every JSON reader takes.
#include "model/tokenizer/load_config.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace octavo::model {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const char* key, const std::string& why) {
  throw input_error("tokenizer_config.json: field \"" + std::string(key) + "\" " + why);
}

/// A token's text, which older files wrap into an object.
std::optional<std::string> token_text(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && found->at("content").is_string()) {
    return found->at("content").get<std::string>();
  }
  fail(key, "is neither a string nor an object with a string \"content\"");
}

std::optional<bool> flag(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (!found->is_boolean()) fail(key, "is not true or false");
  return found->get<bool>();
}

}  // namespace

tokenizer_config parse_tokenizer_config(std::string_view text) {
  json config;
  try {
    config = json::parse(text);
  } catch (const json::exception& error) {
    throw input_error(std::string("tokenizer_config.json: malformed JSON: ") + error.what());
  }
  if (!config.is_object()) throw input_error("tokenizer_config.json: is not an object");
  return {token_text(config, "bos_token"), token_text(config, "eos_token"),
          flag(config, "add_bos_token"), flag(config, "add_eos_token")};
}

}  // namespace octavo::model
