// For tests: tokenizer files of real models, which are not part of the project, and
// what the reference library makes of a corpus with them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace octavo::model::reference {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(OCTAVO_SOURCE_DIR) / "model/tokenizer/fixtures" / name;
}

/// The folder that bench/reference/tokenizer_fixtures.py fills, or nothing.
inline std::optional<std::filesystem::path> folder() {
  const char* named = std::getenv("OCTAVO_TOKENIZERS");
  if (named == nullptr || !std::filesystem::exists(named)) return std::nullopt;
  return named;
}

inline tokenizer load_json_model(const std::filesystem::path& model) {
  const auto config = model / "tokenizer_config.json";
  return tokenizer::from_json(read_file(model / "tokenizer.json"),
                              std::filesystem::exists(config) ? read_file(config) : "");
}

/// The tokenizer keys of a GGUF file, as the script keeps them.
struct gguf_keys {
  nlohmann::json json;
  std::vector<std::string> tokens;
  std::vector<std::string> merges;

  explicit gguf_keys(const std::filesystem::path& file)
      : json(nlohmann::json::parse(read_file(file))),
        tokens(json.at("tokens").get<std::vector<std::string>>()),
        merges(json.value("merges", std::vector<std::string>{})) {}

  [[nodiscard]] gguf_vocabulary view() const {
    const auto id = [this](const char* key) {
      return json.contains(key) ? std::optional<token_id>(json.at(key).get<token_id>())
                                : std::nullopt;
    };
    const auto flag = [this](const char* key) {
      return json.contains(key) ? std::optional<bool>(json.at(key).get<bool>()) : std::nullopt;
    };
    gguf_vocabulary vocabulary;
    vocabulary.model = json.at("model");
    vocabulary.pre = json.value("pre", "");
    vocabulary.tokens = {tokens.begin(), tokens.end()};
    vocabulary.merges = {merges.begin(), merges.end()};
    vocabulary.scores = json.value("scores", std::vector<float>{});
    vocabulary.token_types = json.value("token_type", std::vector<std::int32_t>{});
    vocabulary.bos_token_id = id("bos_token_id");
    vocabulary.eos_token_id = id("eos_token_id");
    vocabulary.unknown_token_id = id("unknown_token_id");
    vocabulary.padding_token_id = id("padding_token_id");
    vocabulary.add_bos_token = flag("add_bos_token");
    vocabulary.add_eos_token = flag("add_eos_token");
    vocabulary.add_space_prefix = flag("add_space_prefix");
    return vocabulary;
  }
};

}  // namespace octavo::model::reference
