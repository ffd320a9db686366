// Text to tokens and back, for byte-level and SentencePiece-style byte-pair models.
//
//   const auto words = tokenizer::from_json(tokenizer_json, tokenizer_config_json);
//   const text_part prompt[] = {{"<|im_start|>user\n", true}, {message, false},
//                               {"<|im_end|>\n", true}};
//   const std::vector<token_id> ids = words.encode_parts(prompt);
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "model/tokenizer/gguf_vocabulary.hpp"

namespace octavo::model {

struct pipeline;

/// What a token of the vocabulary is for.
enum class token_kind : std::uint8_t {
  normal,
  unknown,       ///< stands for what has no token
  control,       ///< begins, ends, separates; carries no text of its own
  user_defined,  ///< found in a text as it stands
  unused,        ///< a place without a token
  byte,          ///< one byte, for characters without a token
};

/// A part of a prompt. Only the text of a template may spell control tokens; the
/// same characters from a user are ordinary text.
struct text_part {
  std::string_view text;
  bool is_template = false;
};

struct encode_options {
  /// Adds what the model wants around a text (usually its first token). A first
  /// token that the text itself begins with is not added again.
  bool add_special = true;
  /// Lets the text spell control tokens. Only for text that no user can reach.
  bool parse_special = false;
};

struct decode_options {
  /// Leaves control tokens out of the text.
  bool skip_special = true;
};

/// A tokenizer, immutable and cheap to copy; every member function may be called
/// from several threads at once.
class tokenizer {
 public:
  /// The longest text that is encoded at once.
  static constexpr std::size_t text_bytes_max = std::size_t{64} << 20;

  /// Reads Hugging Face files: `tokenizer.json`, and `tokenizer_config.json` (which
  /// may be empty) for the first and last tokens. Throws input_error, which names
  /// the field, for malformed or unsupported content.
  [[nodiscard]] static tokenizer from_json(std::string_view tokenizer_json,
                                           std::string_view tokenizer_config_json = {});

  /// Builds from a GGUF file's metadata. Throws input_error, which names the key.
  [[nodiscard]] static tokenizer from_gguf(const gguf_vocabulary& vocabulary);

  /// The tokens of `text`. Throws input_error if it is not UTF-8 or too long.
  [[nodiscard]] std::vector<token_id> encode(std::string_view text,
                                             encode_options options = {}) const;

  /// The tokens of the parts put together, as if they were one text. The parts must
  /// each be UTF-8. A template usually writes the first token itself, so
  /// `add_special` is off by default.
  [[nodiscard]] std::vector<token_id> encode_parts(std::span<const text_part> parts,
                                                   bool add_special = false) const;

  /// The bytes that the tokens stand for; they need not be UTF-8. Throws input_error
  /// for a token outside the vocabulary.
  [[nodiscard]] std::string decode(std::span<const token_id> tokens,
                                   decode_options options = {}) const;
  /// The same as UTF-8 text: U+FFFD stands for what is not.
  [[nodiscard]] std::string decode_text(std::span<const token_id> tokens,
                                        decode_options options = {}) const;

  /// The bytes of one token within a text (a visible space is a space). Throws
  /// input_error for a token outside the vocabulary.
  [[nodiscard]] std::string_view piece(token_id token) const;
  [[nodiscard]] token_kind kind(token_id token) const;
  /// Whether decoding leaves the token out when it skips special ones.
  [[nodiscard]] bool is_special(token_id token) const;
  /// The added token with this text, such as "<|im_end|>".
  [[nodiscard]] std::optional<token_id> added_token_id(std::string_view text) const;

  /// One more than the largest token.
  [[nodiscard]] token_id vocab_size() const;
  [[nodiscard]] std::optional<token_id> bos() const;
  [[nodiscard]] std::optional<token_id> eos() const;
  /// The end of a turn, where the model has a token for it.
  [[nodiscard]] std::optional<token_id> eot() const;
  /// Every token at which generation ends, ascending.
  [[nodiscard]] std::span<const token_id> end_tokens() const;
  /// Whether `add_special` puts the first token in front.
  [[nodiscard]] bool adds_bos() const;
  /// Whether decoding drops one space at the very beginning of a text.
  [[nodiscard]] bool strips_leading_space() const;

 private:
  explicit tokenizer(std::shared_ptr<const pipeline> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const pipeline> parts_;
};

}  // namespace octavo::model
