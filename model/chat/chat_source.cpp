// See chat_source.hpp.
#include "model/chat/chat_source.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace octavo::model {
namespace {

using nlohmann::json;

constexpr std::string_view config_name = "tokenizer_config.json";

struct special_token {
  const char* name;
  const char* gguf_key;
};
constexpr std::array<special_token, 5> special_tokens{{
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"},
    {"mask_token", "tokenizer.ggml.mask_token_id"},
}};

[[noreturn]] void fail(const std::string& field, const std::string& why) {
  throw input_error(std::string(config_name) + ": field \"" + field + "\" " + why);
}

chat_source from_gguf(const gguf_metadata& metadata) {
  constexpr std::string_view key = "tokenizer.chat_template";
  chat_source found;
  for (const auto& [name, content] : metadata.values()) {
    if (name == key) found.templates.emplace("default", metadata.text(name));
    if (name.starts_with(key) && name.size() > key.size() + 1 && name[key.size()] == '.') {
      found.templates.emplace(name.substr(key.size() + 1), metadata.text(name));
    }
  }
  if (!metadata.has("tokenizer.ggml.tokens")) return found;
  const auto tokens = metadata.strings("tokenizer.ggml.tokens");
  for (const auto& [name, id_key] : special_tokens) {
    if (!metadata.has(id_key) || tokens.empty()) continue;
    const auto id = metadata.whole(id_key, std::ssize(tokens) - 1);
    found.special_tokens.emplace(name, tokens[static_cast<std::size_t>(id)]);
  }
  return found;
}

void read_templates(const json& field, chat_source& found) {
  if (field.is_string()) {
    found.templates.emplace("default", field.get<std::string>());
    return;
  }
  if (!field.is_array()) fail("chat_template", "is neither a string nor a list");
  for (const json& one : field) {
    const bool sound = one.is_object() && one.contains("name") && one["name"].is_string() &&
                       one.contains("template") && one["template"].is_string();
    if (!sound) {
      fail("chat_template", "holds something else than {\"name\": ..., \"template\": ...}");
    }
    found.templates.emplace(one["name"].get<std::string>(), one["template"].get<std::string>());
  }
}

std::string text_of(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

chat_source parse_chat_source(std::string_view tokenizer_config_json) {
  json config;
  try {
    config = json::parse(tokenizer_config_json);
  } catch (const json::exception& error) {
    throw input_error(std::string(config_name) + ": malformed JSON: " + error.what());
  }
  if (!config.is_object()) throw input_error(std::string(config_name) + ": is not an object");
  chat_source found;
  for (const auto& [name, id_key] : special_tokens) {
    const auto field = config.find(name);
    if (field == config.end() || field->is_null()) continue;
    // Older files wrap a token's text into an object.
    const json& text =
        field->is_object() && field->contains("content") ? field->at("content") : *field;
    if (!text.is_string()) fail(name, "is neither a string nor an object with \"content\"");
    found.special_tokens.emplace(name, text.get<std::string>());
  }
  const auto field = config.find("chat_template");
  if (field != config.end() && !field->is_null()) read_templates(*field, found);
  return found;
}

chat_source read_chat_source(const checkpoint& source) {
  if (source.gguf() != nullptr) return from_gguf(source.gguf()->metadata);
  chat_source found;
  const std::string config = text_of(source.companion(config_name));
  if (!config.empty()) found = parse_chat_source(config);
  const std::string file = source.companion("chat_template.jinja");
  if (!file.empty()) found.templates.insert_or_assign("default", text_of(file));
  return found;
}

}  // namespace octavo::model
