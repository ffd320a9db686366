// A byte-pair model: how a piece of text becomes first symbols, and which merge.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/units.hpp"
#include "model/tokenizer/bpe_merge.hpp"
#include "model/tokenizer/merge_table.hpp"

namespace octavo::model {

/// What the first symbols of a text are.
enum class symbol_unit {
  byte,       ///< bytes (GPT-2, Llama 3, Qwen)
  character,  ///< code points, with bytes for unknown ones (SentencePiece: Llama 2, Gemma)
};

/// The data of a byte-pair model. A loader fills it, then calls `finish`.
struct bpe_model {
  static constexpr token_id absent = -1;

  symbol_unit unit = symbol_unit::byte;
  /// The token of each single byte: first symbols where `unit` is byte, else what an
  /// unknown character falls back to, if all its bytes have one.
  std::array<token_id, 256> byte_tokens;
  std::optional<token_id> unknown;
  /// One unknown token for a run of unknown characters.
  bool fuse_unknown = false;
  merge_table merges;
  /// The token of each single character; used where `unit` is character.
  std::unordered_map<char32_t, token_id> character_tokens;
  /// Where not empty: pieces that are tokens as they stand, whatever the merges say.
  std::unordered_map<std::string, token_id> whole_pieces;

  bpe_model() { byte_tokens.fill(absent); }

  /// Notes that a merged token has `text`: its neighbours may stand together.
  void allow_neighbours(std::string_view text);
  [[nodiscard]] bool may_be_neighbours(char32_t left, char32_t right) const {
    return neighbours_.contains(neighbours_key(left, right));
  }

 private:
  static std::uint64_t neighbours_key(char32_t left, char32_t right) {
    return (std::uint64_t{left} << 32) | right;
  }

  std::unordered_set<std::uint64_t> neighbours_;
};

/// Encodes pieces of text by a model; one per thread.
class bpe_encoder {
 public:
  explicit bpe_encoder(const bpe_model& model) : model_(model), merger_(model.merges) {}

  /// Appends the tokens of `piece`, which is valid UTF-8 and contains no control
  /// tokens. A character that has neither token nor fallback is left out, as the
  /// reference implementation does.
  void encode(std::string_view piece, std::vector<token_id>& out);

 private:
  void encode_bytes(std::string_view piece, std::vector<token_id>& out);
  void encode_characters(std::string_view piece, std::vector<token_id>& out);
  void fall_back(std::string_view character);
  void add_unknown();
  void merge_symbols(std::vector<token_id>& out);

  const bpe_model& model_;
  bpe_merger merger_;
  std::vector<token_id> symbols_;
  bool after_unknown_ = false;
};

}  // namespace octavo::model
