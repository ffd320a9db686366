// Encoding: added tokens, normalisation, splitting and merging, in that order; and
// decoding. Building a tokenizer is in load_json.cpp and load_gguf.cpp.
#include "model/tokenizer/tokenizer.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "model/tokenizer/pipeline.hpp"
#include "model/tokenizer/utf8.hpp"

namespace octavo::model {
namespace {

/// Encodes one text.
class encoder {
 public:
  explicit encoder(const pipeline& parts) : parts_(parts), model_(parts.model) {}

  std::vector<token_id> run(const marked_text& text) {
    for_each_between(text, parts_.raw_added.find_all(text),
                     [&](text_range range) { encode_plain(text, range); });
    return std::move(tokens_);
  }

 private:
  /// Emits the matches' tokens, and gives `visit` what lies between them.
  template <class Visit>
  void for_each_between(const marked_text& text, const std::vector<added_match>& matches,
                        Visit&& visit) {
    std::size_t at = 0;
    for (const added_match& match : matches) {
      if (match.range.begin > at) visit(text_range{at, match.range.begin});
      tokens_.push_back(match.id);
      at = match.range.end;
    }
    if (at < text.text().size()) visit(text_range{at, text.text().size()});
  }

  /// Text without raw added tokens. Runs of different trust are normalised one by
  /// one, so that it is known afterwards which is which.
  void encode_plain(const marked_text& text, text_range range) {
    marked_text normal;
    bool at_front = true;
    text.for_each_run(range, [&](std::string_view run, bool trusted) {
      normal.append(parts_.normalize.apply(run, at_front), trusted);
      at_front = false;
    });
    const bool text_begins = range.begin == 0;
    for_each_between(normal, parts_.normalized_added.find_all(normal), [&](text_range between) {
      encode_normal(normal.text().substr(between.begin, between.end - between.begin),
                    text_begins && between.begin == 0);
    });
  }

  void encode_normal(std::string text, bool text_begins) {
    const std::string prepared = parts_.pre.prepare(std::move(text), text_begins);
    parts_.pre.split(prepared, pieces_);
    for (const std::string_view piece : pieces_) model_.encode(piece, tokens_);
  }

  const pipeline& parts_;
  bpe_encoder model_;
  std::vector<std::string_view> pieces_;
  std::vector<token_id> tokens_;
};

void check_text(std::string_view text, std::size_t total_bytes) {
  if (total_bytes > tokenizer::text_bytes_max) {
    throw input_error("text has more than " + std::to_string(tokenizer::text_bytes_max) +
                      " bytes, the most that is tokenized at once");
  }
  if (const auto at = first_invalid_utf8(text)) {
    throw input_error("text is not valid UTF-8: byte " + std::to_string(*at) + " of " +
                      std::to_string(text.size()));
  }
}

const vocabulary_entry& entry_of(const pipeline& parts, token_id token) {
  if (token < 0 || static_cast<std::size_t>(token) >= parts.entries.size()) {
    throw input_error("token " + std::to_string(token) + " is outside the vocabulary (0 to " +
                      std::to_string(parts.entries.size() - 1) + ")");
  }
  return parts.entries[token];
}

}  // namespace

std::vector<token_id> tokenizer::encode(std::string_view text, encode_options options) const {
  const text_part part{text, options.parse_special};
  return encode_parts({&part, 1}, options.add_special);
}

std::vector<token_id> tokenizer::encode_parts(std::span<const text_part> parts,
                                              bool add_special) const {
  marked_text text;
  for (const text_part& part : parts) {
    check_text(part.text, text.text().size() + part.text.size());
    text.append(part.text, part.is_template);
  }
  std::vector<token_id> tokens = encoder(*parts_).run(text);
  if (!add_special) return tokens;
  const std::vector<token_id>& prefix = parts_->prefix;
  const bool begun =
      tokens.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), tokens.begin());
  if (!begun) tokens.insert(tokens.begin(), prefix.begin(), prefix.end());
  tokens.insert(tokens.end(), parts_->suffix.begin(), parts_->suffix.end());
  return tokens;
}

void append_piece(const tokenizer& words, token_id token, decode_options options, bool& at_start,
                  std::string& bytes) {
  std::string_view piece = words.piece(token);
  if (options.skip_special && words.is_special(token)) return;
  if (piece.empty()) return;
  if (at_start && words.strips_leading_space() && piece.front() == ' ') piece.remove_prefix(1);
  at_start = false;
  bytes += piece;
}

std::string tokenizer::decode(std::span<const token_id> tokens, decode_options options) const {
  std::string bytes;
  bool at_start = true;
  for (const token_id token : tokens) append_piece(*this, token, options, at_start, bytes);
  return bytes;
}

std::string tokenizer::decode_text(std::span<const token_id> tokens, decode_options options) const {
  std::string text;
  utf8_assembler assembler;
  assembler.push(decode(tokens, options), text);
  assembler.flush(text);
  return text;
}

std::string_view tokenizer::piece(token_id token) const {
  return entry_of(*parts_, token).bytes;
}

token_kind tokenizer::kind(token_id token) const {
  return entry_of(*parts_, token).kind;
}

bool tokenizer::is_special(token_id token) const {
  return entry_of(*parts_, token).special;
}

std::optional<token_id> tokenizer::added_token_id(std::string_view text) const {
  const auto found = parts_->added_ids.find(text);
  if (found == parts_->added_ids.end()) return std::nullopt;
  return found->second;
}

token_id tokenizer::vocab_size() const {
  return static_cast<token_id>(parts_->entries.size());
}

std::optional<token_id> tokenizer::bos() const {
  return parts_->bos;
}

std::optional<token_id> tokenizer::eos() const {
  return parts_->eos;
}

std::optional<token_id> tokenizer::eot() const {
  return parts_->eot;
}

std::span<const token_id> tokenizer::end_tokens() const {
  return parts_->end_tokens;
}

bool tokenizer::adds_bos() const {
  return parts_->bos && std::ranges::find(parts_->prefix, *parts_->bos) != parts_->prefix.end();
}

bool tokenizer::strips_leading_space() const {
  return parts_->strips_leading_space;
}

}  // namespace octavo::model
