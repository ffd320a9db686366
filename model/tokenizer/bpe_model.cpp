// First symbols of a piece, then merging.
#include "model/tokenizer/bpe_model.hpp"

#include <algorithm>

#include "model/tokenizer/utf8.hpp"

namespace octavo::model {

void bpe_model::allow_neighbours(std::string_view text) {
  std::size_t at = 0;
  if (text.empty()) return;
  char32_t left = read_code_point(text, at);
  while (at < text.size()) {
    const char32_t right = read_code_point(text, at);
    neighbours_.insert(neighbours_key(left, right));
    left = right;
  }
}

void bpe_encoder::encode(std::string_view piece, std::vector<token_id>& out) {
  if (!model_.whole_pieces.empty()) {
    const auto whole = model_.whole_pieces.find(std::string(piece));
    if (whole != model_.whole_pieces.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  if (model_.unit == symbol_unit::byte) {
    encode_bytes(piece, out);
  } else {
    encode_characters(piece, out);
  }
}

void bpe_encoder::encode_bytes(std::string_view piece, std::vector<token_id>& out) {
  after_unknown_ = false;
  for (const char byte : piece) {
    const token_id token = model_.byte_tokens[static_cast<unsigned char>(byte)];
    if (token == bpe_model::absent) {
      add_unknown();
    } else {
      symbols_.push_back(token);
      after_unknown_ = false;
    }
  }
  merge_symbols(out);
}

/// Text without spaces to split at is one long piece here. It is cut wherever no
/// token holds the two characters side by side: no merge can cross such a place,
/// so the tokens are the same and the pieces short.
void bpe_encoder::encode_characters(std::string_view piece, std::vector<token_id>& out) {
  after_unknown_ = false;
  std::optional<char32_t> before;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t begin = at;
    const char32_t character = read_code_point(piece, at);
    if (before && !model_.may_be_neighbours(*before, character)) merge_symbols(out);
    before = character;
    const auto token = model_.character_tokens.find(character);
    if (token != model_.character_tokens.end()) {
      symbols_.push_back(token->second);
      after_unknown_ = false;
    } else {
      fall_back(piece.substr(begin, at - begin));
    }
  }
  merge_symbols(out);
}

void bpe_encoder::fall_back(std::string_view character) {
  const auto token_of = [this](char byte) {
    return model_.byte_tokens[static_cast<unsigned char>(byte)];
  };
  const bool spelled = std::ranges::all_of(
      character, [&](char byte) { return token_of(byte) != bpe_model::absent; });
  if (!spelled) {
    add_unknown();
    return;
  }
  for (const char byte : character) symbols_.push_back(token_of(byte));
  after_unknown_ = false;
}

void bpe_encoder::add_unknown() {
  if (!model_.unknown || (after_unknown_ && model_.fuse_unknown)) return;
  symbols_.push_back(*model_.unknown);
  after_unknown_ = true;
}

void bpe_encoder::merge_symbols(std::vector<token_id>& out) {
  merger_.merge(symbols_, out);
  symbols_.clear();
}

}  // namespace octavo::model
