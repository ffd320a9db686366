// What the two loaders share.
#include "model/tokenizer/pipeline.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace octavo::model {
namespace {

// Texts that end a turn in the families that have them. Where a file calls such a
// token special, a model that writes it has finished.
constexpr std::array<std::string_view, 5> turn_ends = {"<|eot_id|>", "<|im_end|>", "<end_of_turn>",
                                                       "<|end|>", "<|eom_id|>"};
constexpr std::string_view text_end = "<|endoftext|>";

}  // namespace

void finish_end_tokens(pipeline& parts, std::vector<token_id> named) {
  const auto special = [&parts](std::string_view text) -> std::optional<token_id> {
    const auto found = parts.added_ids.find(text);
    if (found == parts.added_ids.end() || !parts.entries[found->second].special) return {};
    return found->second;
  };
  for (const std::string_view text : turn_ends) {
    const std::optional<token_id> id = special(text);
    if (!id) continue;
    named.push_back(*id);
    if (!parts.eot) parts.eot = id;
  }
  if (const std::optional<token_id> id = special(text_end)) named.push_back(*id);
  if (parts.eos) named.push_back(*parts.eos);
  if (parts.eot) named.push_back(*parts.eot);
  std::ranges::sort(named);
  named.erase(std::ranges::unique(named).begin(), named.end());
  parts.end_tokens = std::move(named);
}

std::optional<unsigned char> byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  if (error != std::errc{} || end != text.data() + 5) return std::nullopt;
  return static_cast<unsigned char>(value);
}

std::string with_plain_spaces(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(visible_space)) {
      plain += ' ';
      at += visible_space.size();
    } else {
      plain += text[at++];
    }
  }
  return plain;
}

}  // namespace octavo::model
