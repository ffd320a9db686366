// The parts of a tokenizer as the loaders build them. Private to model/tokenizer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/added_tokens.hpp"
#include "model/tokenizer/bpe_model.hpp"
#include "model/tokenizer/normalizer.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace octavo::model {

/// More tokens than any vocabulary has; keeps a hostile file's memory small.
constexpr std::size_t vocabulary_size_max = std::size_t{1} << 22;
/// More merges than any vocabulary has.
constexpr std::size_t merges_max = std::size_t{1} << 23;
/// The visible space of SentencePiece, U+2581.
constexpr std::string_view visible_space = "\xE2\x96\x81";

/// One entry of a vocabulary.
struct vocabulary_entry {
  std::string bytes;
  token_kind kind = token_kind::unused;
  bool special = false;  ///< decoding may leave it out
};

struct pipeline {
  std::vector<vocabulary_entry> entries;
  std::map<std::string, token_id, std::less<>> added_ids;

  added_token_set raw_added;         ///< found before normalisation
  added_token_set normalized_added;  ///< found after it
  normalizer normalize;
  pre_tokenizer pre;
  bpe_model model;

  std::vector<token_id> prefix;  ///< what add_special puts in front
  std::vector<token_id> suffix;  ///< and behind
  std::optional<token_id> bos;
  std::optional<token_id> eos;
  std::optional<token_id> eot;
  std::vector<token_id> end_tokens;
  bool strips_leading_space = false;
};

/// Appends a token's bytes to `bytes`. `at_start` is true until the first byte of a
/// text has come out; it governs the space that some models drop there.
void append_piece(const tokenizer& words, token_id token, decode_options options, bool& at_start,
                  std::string& bytes);

/// Completes what both loaders share: the tokens that end generation, by the keys
/// that named them (`named`) and by well-known texts.
void finish_end_tokens(pipeline& parts, std::vector<token_id> named);

/// The byte that a token like "<0x0A>" stands for.
[[nodiscard]] std::optional<unsigned char> byte_of_token(std::string_view text);

/// `text` with every visible space made a space.
[[nodiscard]] std::string with_plain_spaces(std::string_view text);

}  // namespace octavo::model
