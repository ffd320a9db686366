// Tokens that are found in a text as they stand, before any splitting or merging.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/units.hpp"
#include "model/tokenizer/marked_text.hpp"

namespace octavo::model {

/// How an added token is found; the names are those of tokenizer.json.
struct added_token {
  token_id id = 0;
  /// It steers the model (roles, ends, tools): only trusted text may spell it.
  bool control = false;
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space after it along
  bool single_word = false;  ///< only where no word character touches it
};

/// An added token found in a text.
struct added_match {
  text_range range;
  token_id id = 0;
};

/// A set of added tokens, as a trie over bytes.
class added_token_set {
 public:
  /// The longest text of an added token; keeps the search linear in practice.
  static constexpr std::size_t text_bytes_max = 1024;

  /// `text` must have 1 to text_bytes_max bytes; a later token with the same text
  /// replaces the earlier.
  void insert(std::string_view text, const added_token& token);
  [[nodiscard]] bool empty() const { return tokens_.empty(); }

  /// All matches, the leftmost first and the longest where several begin; control
  /// tokens only where every byte is trusted.
  [[nodiscard]] std::vector<added_match> find_all(const marked_text& text) const;

 private:
  struct node {
    std::int32_t token = -1;  // index into tokens_
  };

  static std::uint64_t edge(std::uint32_t from, char byte) {
    return (std::uint64_t{from} << 8) | static_cast<unsigned char>(byte);
  }
  /// The longest token at `at` whose text ends by `trusted_end` if it is a control token.
  [[nodiscard]] const added_token* longest_at(std::string_view text, std::size_t at,
                                              std::size_t trusted_end, std::size_t& end) const;

  std::vector<added_token> tokens_;
  std::vector<node> nodes_ = std::vector<node>(1);
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  std::array<bool, 256> first_bytes_{};
};

/// Whether a token that its file does not call special steers the model all the
/// same: <|...|>, [...], tool calls, reasoning marks, reserved places. Some files
/// list their role tokens as ordinary ones.
[[nodiscard]] bool has_control_spelling(std::string_view text);

}  // namespace octavo::model
