// Builds a tokenizer from the tokenizer keys of a GGUF file.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "core/error.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/json_field.hpp"
#include "model/tokenizer/pipeline.hpp"
#include "model/tokenizer/split_rules.hpp"
#include "model/tokenizer/utf8.hpp"

namespace octavo::model {
namespace {

[[noreturn]] void fail(std::string_view key, const std::string& why) {
  throw input_error("key \"tokenizer.ggml." + std::string(key) + "\" " + why);
}

std::string with_visible_spaces(std::string_view text) {
  std::string visible;
  for (const char c : text) {
    if (c == ' ') {
      visible += visible_space;
    } else {
      visible += c;
    }
  }
  return visible;
}

class gguf_loader {
 public:
  explicit gguf_loader(const gguf_vocabulary& source) : source_(source) {}

  std::shared_ptr<pipeline> load() {
    check_sizes();
    if (source_.model == "gpt2") {
      parts_->pre = pre_tokenizer_named(source_.pre);
    } else if (source_.model == "llama") {
      prepare_sentencepiece();
    } else {
      fail("model", "is " + in_quotes(source_.model) + "; supported are llama and gpt2");
    }
    read_tokens();
    if (by_bytes()) {
      read_merges();
    } else {
      merges_from_scores();
    }
    read_special();
    return parts_;
  }

 private:
  [[nodiscard]] bool by_bytes() const { return source_.model == "gpt2"; }

  void check_sizes() const {
    const std::size_t count = source_.tokens.size();
    if (count == 0) fail("tokens", "is missing or empty");
    if (count > vocabulary_size_max) {
      fail("tokens", "has more than " + std::to_string(vocabulary_size_max) + " entries");
    }
    const auto check = [count](std::string_view key, std::size_t size) {
      if (size != count) {
        fail(key, "has " + std::to_string(size) + " entries; tokens has " + std::to_string(count));
      }
    };
    if (!source_.token_types.empty()) check("token_type", source_.token_types.size());
    if (source_.model == "llama") check("scores", source_.scores.size());
    if (source_.merges.size() > merges_max) {
      fail("merges", "has more than " + std::to_string(merges_max) + " entries");
    }
  }

  void prepare_sentencepiece() {
    const std::string space(visible_space);
    const bool prefix = source_.add_space_prefix.value_or(true);
    parts_->model.unit = symbol_unit::character;
    parts_->normalize.add(replace_step{text_pattern::literal(" ", "space"), space});
    if (prefix) parts_->normalize.add(prepend_step{space});
    parts_->strips_leading_space = prefix;
  }

  [[nodiscard]] token_kind kind_of(token_id id) const {
    if (source_.token_types.empty()) return token_kind::normal;
    switch (source_.token_types[id]) {
      case 0:
      case 1:
        return token_kind::normal;
      case 2:
        return token_kind::unknown;
      case 3:
        return token_kind::control;
      case 4:
        return token_kind::user_defined;
      case 5:
        return token_kind::unused;
      case 6:
        return token_kind::byte;
      default:
        fail("token_type", "is " + std::to_string(source_.token_types[id]) + " for token " +
                               std::to_string(id) + "; allowed are 0 to 6");
    }
  }

  void read_tokens() {
    ids_.reserve(source_.tokens.size());
    parts_->entries.reserve(source_.tokens.size());
    for (std::size_t i = 0; i < source_.tokens.size(); ++i) {
      const std::string_view text = source_.tokens[i];
      const auto id = static_cast<token_id>(i);
      if (first_invalid_utf8(text)) {
        fail("tokens", "has token " + std::to_string(i) + ", which is not valid UTF-8");
      }
      const token_kind kind = kind_of(id);
      parts_->entries.push_back(entry_for(id, text, kind));
      if (kind == token_kind::control || kind == token_kind::user_defined) {
        add_token(id, text, kind);
      }
      if (!ids_.try_emplace(text, id).second) {
        fail("tokens",
             "has " + in_quotes(text) + " twice, the second as token " + std::to_string(i));
      }
      reachable_.push_back(is_reachable(text, kind));
      if (reachable_.back()) read_symbol(id, text);
    }
  }

  vocabulary_entry entry_for(token_id id, std::string_view text, token_kind kind) {
    const bool special = kind == token_kind::control || kind == token_kind::unknown;
    if (kind == token_kind::byte) {
      const std::optional<unsigned char> byte = byte_of_token(text);
      if (!byte) {
        fail("tokens", "has the byte token " + std::to_string(id) + " as " + in_quotes(text) +
                           "; allowed are <0x00> to <0xFF>");
      }
      if (!by_bytes()) parts_->model.byte_tokens[*byte] = id;
      return {std::string(1, static_cast<char>(*byte)), kind, false};
    }
    if (!by_bytes()) return {with_plain_spaces(text), kind, special};
    const bool literal = special || kind == token_kind::user_defined;
    if (literal) return {std::string(text), kind, special};
    return {spelled_bytes(text).value_or(std::string(text)), kind, special};
  }

  /// SentencePiece finds its user-defined tokens after spaces have become visible.
  void add_token(token_id id, std::string_view text, token_kind kind) {
    if (text.empty() || text.size() > added_token_set::text_bytes_max) return;
    added_token token;
    token.id = id;
    token.control = kind == token_kind::control || has_control_spelling(text);
    if (by_bytes() || token.control) {
      parts_->raw_added.insert(text, token);
    } else {
      parts_->normalized_added.insert(with_visible_spaces(text), token);
    }
    parts_->added_ids.emplace(text, id);
  }

  /// Whether merging may give the token: what steers the model never comes out of
  /// ordinary text, and bytes only where a character has no token.
  static bool is_reachable(std::string_view text, token_kind kind) {
    if (text.empty()) return false;
    if (kind == token_kind::user_defined) return !has_control_spelling(text);
    return kind == token_kind::normal;
  }

  void read_symbol(token_id id, std::string_view text) {
    bpe_model& model = parts_->model;
    if (by_bytes()) {
      const std::optional<std::string> bytes = spelled_bytes(text);
      if (!bytes) return;
      if (bytes->size() == 1) model.byte_tokens[static_cast<unsigned char>(bytes->front())] = id;
      if (ignores_merges(source_.pre)) model.whole_pieces.emplace(*bytes, id);
      return;
    }
    std::size_t end = 0;
    const char32_t character = read_code_point(text, end);
    if (end == text.size()) model.character_tokens.emplace(character, id);
  }

  [[nodiscard]] std::optional<token_id> find(std::string_view text) const {
    const auto found = ids_.find(text);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }

  void read_merges() {
    if (source_.merges.empty()) fail("merges", "is missing or empty");
    parts_->model.merges = merge_table(source_.merges.size());
    for (std::size_t rank = 0; rank < source_.merges.size(); ++rank) {
      const std::string_view rule = source_.merges[rank];
      const std::size_t space = rule.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == rule.size()) {
        fail("merges", "has " + in_quotes(rule) + " at " + std::to_string(rank) +
                           "; \"left right\" is needed");
      }
      const std::string_view left = rule.substr(0, space);
      const std::string_view right = rule.substr(space + 1);
      const token_id ids[] = {merged_id(rank, left), merged_id(rank, right),
                              merged_id(rank, std::string(left).append(right))};
      const bool allowed = std::ranges::all_of(ids, [this](token_id id) { return reachable_[id]; });
      if (!allowed) continue;
      parts_->model.merges.insert(ids[0], ids[1], {static_cast<std::uint32_t>(rank), ids[2]});
    }
  }

  token_id merged_id(std::size_t rank, std::string_view text) const {
    const std::optional<token_id> id = find(text);
    if (!id) {
      fail("merges",
           "names " + in_quotes(text) + " at " + std::to_string(rank) + ", which tokens lacks");
    }
    return *id;
  }

  /// SentencePiece keeps no list of merges: any two neighbours merge whose text
  /// together is a token, the one with the highest score first.
  void merges_from_scores() {
    const std::vector<std::uint32_t> ranks = ranks_by_score();
    for (const auto& [text, id] : ids_) {
      if (!reachable_[id]) continue;
      bool merges = false;
      for (std::size_t cut = 1; cut < text.size(); ++cut) {
        if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;
        const std::optional<token_id> left = find(text.substr(0, cut));
        const std::optional<token_id> right = find(text.substr(cut));
        if (!left || !right || !reachable_[*left] || !reachable_[*right]) continue;
        parts_->model.merges.insert(*left, *right, {ranks[id], id});
        merges = true;
      }
      if (merges) parts_->model.allow_neighbours(text);
    }
  }

  /// Equal scores share a rank, so that the leftmost of them merges first.
  [[nodiscard]] std::vector<std::uint32_t> ranks_by_score() const {
    const std::vector<float>& scores = source_.scores;
    if (std::ranges::any_of(scores, [](float score) { return std::isnan(score); })) {
      fail("scores", "has an entry that is not a number");
    }
    std::vector<std::uint32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return scores[a] > scores[b]; });
    std::vector<std::uint32_t> ranks(scores.size());
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++rank;
      ranks[order[i]] = rank;
    }
    return ranks;
  }

  [[nodiscard]] std::optional<token_id> checked(std::string_view key,
                                                std::optional<token_id> id) const {
    if (!id) return id;
    if (*id < 0 || static_cast<std::size_t>(*id) >= source_.tokens.size()) {
      fail(key, "is " + std::to_string(*id) + "; tokens go from 0 to " +
                    std::to_string(source_.tokens.size() - 1));
    }
    return id;
  }

  void read_special() {
    const bool sentencepiece = !by_bytes();
    const auto defaulted = [&](std::optional<token_id> id, token_id otherwise) {
      const bool usable = static_cast<std::size_t>(otherwise) < source_.tokens.size();
      return !id && sentencepiece && usable ? std::optional(otherwise) : id;
    };
    parts_->bos = checked("bos_token_id", defaulted(source_.bos_token_id, 1));
    parts_->eos = checked("eos_token_id", defaulted(source_.eos_token_id, 2));
    parts_->eot = checked("eot_token_id", source_.eot_token_id);
    if (sentencepiece) {
      parts_->model.unknown = checked("unknown_token_id", defaulted(source_.unknown_token_id, 0));
    }
    const bool bos_default = sentencepiece || adds_bos_by_default(source_.pre);
    if (source_.add_bos_token.value_or(bos_default) && parts_->bos) {
      parts_->prefix.push_back(*parts_->bos);
    }
    if (source_.add_eos_token.value_or(false) && parts_->eos) {
      parts_->suffix.push_back(*parts_->eos);
    }
    std::vector<token_id> ends;
    if (const auto eom = checked("eom_token_id", source_.eom_token_id)) ends.push_back(*eom);
    (void)checked("padding_token_id", source_.padding_token_id);
    finish_end_tokens(*parts_, std::move(ends));
  }

  const gguf_vocabulary& source_;
  std::shared_ptr<pipeline> parts_ = std::make_shared<pipeline>();
  std::unordered_map<std::string_view, token_id> ids_;
  std::vector<bool> reachable_;  // by merging, for each token
};

}  // namespace

tokenizer tokenizer::from_gguf(const gguf_vocabulary& vocabulary) {
  return tokenizer(gguf_loader(vocabulary).load());
}

}  // namespace octavo::model
