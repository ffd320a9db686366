// Finding added tokens.
#include "model/tokenizer/added_tokens.hpp"

#include <algorithm>
#include <cassert>

#include "model/tokenizer/utf8.hpp"

namespace octavo::model {
namespace {

bool framed(std::string_view text, std::string_view open, std::string_view close) {
  return text.size() > open.size() + close.size() && text.starts_with(open) &&
         text.ends_with(close);
}

std::size_t previous_character(std::string_view text, std::size_t at) {
  --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool touches_word(std::string_view text, text_range range) {
  if (range.begin > 0) {
    std::size_t at = previous_character(text, range.begin);
    if (is_word_character(read_code_point(text, at))) return true;
  }
  if (range.end < text.size()) {
    std::size_t at = range.end;
    if (is_word_character(read_code_point(text, at))) return true;
  }
  return false;
}

std::size_t skip_space_back(std::string_view text, std::size_t at, std::size_t floor) {
  while (at > floor) {
    const std::size_t before = previous_character(text, at);
    std::size_t next = before;
    if (!is_white_space(read_code_point(text, next))) break;
    at = before;
  }
  return at;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t next = at;
    if (!is_white_space(read_code_point(text, next))) break;
    at = next;
  }
  return at;
}

}  // namespace

bool has_control_spelling(std::string_view text) {
  const bool barred = framed(text, "<|", "|>") || framed(text, "<｜", "｜>");
  if (barred || framed(text, "[", "]")) return true;
  if (!framed(text, "<", ">")) return false;
  std::string_view name = text.substr(1, text.size() - 2);
  if (name.starts_with('/')) name.remove_prefix(1);
  constexpr std::array<std::string_view, 8> families = {
      "think", "tool", "unused", "reserved", "start_of_", "end_of_", "begin_of_", "fim_"};
  return std::ranges::any_of(families,
                             [&](std::string_view family) { return name.starts_with(family); });
}

void added_token_set::insert(std::string_view text, const added_token& token) {
  assert(!text.empty() && text.size() <= text_bytes_max);
  std::uint32_t at = 0;
  for (const char byte : text) {
    const auto [child, added] =
        edges_.try_emplace(edge(at, byte), static_cast<std::uint32_t>(nodes_.size()));
    if (added) nodes_.emplace_back();
    at = child->second;
  }
  if (nodes_[at].token < 0) {
    nodes_[at].token = static_cast<std::int32_t>(tokens_.size());
    tokens_.emplace_back();
  }
  tokens_[nodes_[at].token] = token;
  first_bytes_[static_cast<unsigned char>(text.front())] = true;
}

const added_token* added_token_set::longest_at(std::string_view text, std::size_t at,
                                               std::size_t trusted_end, std::size_t& end) const {
  const added_token* longest = nullptr;
  std::uint32_t place = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto child = edges_.find(edge(place, text[i]));
    if (child == edges_.end()) break;
    place = child->second;
    if (nodes_[place].token < 0) continue;
    const added_token& token = tokens_[nodes_[place].token];
    if (token.control && i + 1 > trusted_end) continue;
    longest = &token;
    end = i + 1;
  }
  return longest;
}

std::vector<added_match> added_token_set::find_all(const marked_text& marked) const {
  std::vector<added_match> matches;
  if (empty()) return matches;
  const std::string_view text = marked.text();
  const std::vector<text_range>& trusted = marked.trusted();
  std::size_t stretch = 0;
  std::size_t taken = 0;  // the end of the last match, with its white space
  for (std::size_t at = 0; at < text.size();) {
    if (!first_bytes_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    while (stretch < trusted.size() && trusted[stretch].end <= at) ++stretch;
    const bool inside = stretch < trusted.size() && trusted[stretch].begin <= at;
    std::size_t end = at;
    const added_token* token = longest_at(text, at, inside ? trusted[stretch].end : 0, end);
    if (token == nullptr) {
      ++at;
      continue;
    }
    text_range range{at, end};
    at = end;
    if (range.begin < taken || (token->single_word && touches_word(text, range))) continue;
    if (token->lstrip) range.begin = skip_space_back(text, range.begin, taken);
    if (token->rstrip) range.end = skip_space(text, range.end);
    taken = range.end;
    matches.push_back({range, token->id});
  }
  return matches;
}

}  // namespace octavo::model
