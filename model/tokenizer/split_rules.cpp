// Patterns as the models' own tokenizer.json files write them; names as GGUF has them.
#include "model/tokenizer/split_rules.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "core/error.hpp"

namespace octavo::model {
namespace {

using patterns = std::span<const std::string_view>;

constexpr std::string_view gpt2[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};

constexpr std::string_view digits_then_gpt2[] = {R"(\p{N})", gpt2[0]};

constexpr std::string_view llama3[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::string_view qwen2[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::string_view qwen35[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::string_view deepseek3[] = {
    R"(\p{N}{1,3})", "[一-龥\u3040-ゟ゠-ヿ]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::string_view deepseek_coder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                               "[一-龥ࠀ-一가-퟿]+", R"(\p{N})"};

constexpr std::string_view tekken[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::string_view gpt4o[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

struct rule {
  std::string_view name;
  patterns split;
};

constexpr std::array<rule, 21> rules = {{
    {"gpt-2", gpt2},
    {"gpt2", gpt2},
    {"llama-bpe", llama3},
    {"llama3", llama3},
    {"llama-v3", llama3},
    {"qwen2", qwen2},
    {"deepseek-r1-qwen", qwen2},
    {"stablelm2", qwen2},
    {"qwen35", qwen35},
    {"smollm", digits_then_gpt2},
    {"starcoder", digits_then_gpt2},
    {"refact", digits_then_gpt2},
    {"command-r", digits_then_gpt2},
    {"codeshell", digits_then_gpt2},
    {"exaone", digits_then_gpt2},
    {"deepseek-v3", deepseek3},
    {"deepseek-coder", deepseek_coder},
    {"tekken", tekken},
    {"gpt-4o", gpt4o},
    {"llama4", gpt4o},
    {"olmo", gpt2},
}};

std::string known_names() {
  std::string names;
  for (const rule& one : rules) {
    if (!names.empty()) names += ", ";
    names += one.name;
  }
  return names;
}

}  // namespace

const std::string_view gpt2_pattern = gpt2[0];

pre_tokenizer pre_tokenizer_named(std::string_view name) {
  const auto found = std::ranges::find(rules, name, &rule::name);
  if (found == rules.end()) {
    throw input_error("key \"tokenizer.ggml.pre\" is \"" + std::string(name) +
                      "\"; supported are " + known_names());
  }
  pre_tokenizer pre;
  for (const std::string_view pattern : found->split) {
    pre.add({text_pattern::regex(pattern, "split pattern of " + std::string(name)),
             split_behavior::isolated, false});
  }
  return pre;
}

bool ignores_merges(std::string_view name) {
  return name == "llama-bpe" || name == "llama3" || name == "llama-v3" || name == "tekken";
}

bool adds_bos_by_default(std::string_view name) {
  return ignores_merges(name);
}

}  // namespace octavo::model
