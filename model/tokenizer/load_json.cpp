// Builds a tokenizer from Hugging Face's tokenizer.json and tokenizer_config.json.
#include <algorithm>
#include <unordered_map>

#include "core/error.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/json_field.hpp"
#include "model/tokenizer/load_config.hpp"
#include "model/tokenizer/load_steps.hpp"
#include "model/tokenizer/pipeline.hpp"
#include "model/tokenizer/utf8.hpp"

namespace octavo::model {
namespace {

constexpr std::int64_t token_max = static_cast<std::int64_t>(vocabulary_size_max) - 1;

class json_loader {
 public:
  explicit json_loader(const json_field& root) : root_(root), model_(root.at("model")) {}

  std::shared_ptr<pipeline> load() {
    check_model();
    if (const auto field = root_.find("normalizer")) parts_->normalize = load_normalizer(*field);
    if (const auto field = root_.find("pre_tokenizer")) {
      loaded_pre_tokenizer loaded = load_pre_tokenizer(*field);
      parts_->pre = std::move(loaded.pre);
      if (!loaded.byte_level) parts_->model.unit = symbol_unit::character;
    } else {
      parts_->model.unit = symbol_unit::character;
    }
    read_vocabulary();
    read_added_tokens();
    fill_entries();
    read_unknown();
    read_symbols();
    read_merges();
    if (const auto field = root_.find("post_processor")) load_post_processor(*field, *parts_);
    parts_->strips_leading_space = load_decoder(root_.at("decoder"));
    return parts_;
  }

  [[nodiscard]] std::optional<token_id> id_of(std::string_view text) const {
    const auto found = ids_.find(text);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }

 private:
  [[nodiscard]] bool by_bytes() const { return parts_->model.unit == symbol_unit::byte; }

  void check_model() {
    const std::string_view type = model_.text_or("type", model_.has("merges") ? "BPE" : "none");
    if (type != "BPE") model_.fail("is of type " + in_quotes(type) + "; supported is BPE");
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model_.text_or(affix, "").empty()) model_.at(affix).fail("is not supported");
    }
    if (model_.has("dropout")) model_.at("dropout").fail("is not supported (null is)");
    byte_fallback_ = model_.flag_or("byte_fallback", false);
    parts_->model.fuse_unknown = model_.flag_or("fuse_unk", false);
  }

  /// Gives `text` its token; false where one of them is taken otherwise.
  bool name_token(token_id id, std::string_view text) {
    if (static_cast<std::size_t>(id) >= texts_.size()) texts_.resize(std::size_t(id) + 1);
    const auto [known, added] = ids_.try_emplace(text, id);
    if (!added) return known->second == id;
    if (texts_[id].data() != nullptr) return false;
    texts_[id] = text;
    return true;
  }

  void read_vocabulary() {
    const json_field field = model_.at("vocab");
    const simdjson::dom::object entries = field.object();
    ids_.reserve(entries.size());
    for (const auto entry : entries) {
      std::int64_t id = 0;
      if (entry.value.get(id) != simdjson::SUCCESS || id < 0 || id > token_max) {
        (void)field.member(in_quotes(entry.key), entry.value).integer(0, token_max);
      }
      if (ids_.contains(entry.key)) {
        field.fail("has the token " + in_quotes(entry.key) + " twice");
      }
      if (!name_token(static_cast<token_id>(id), entry.key)) {
        field.fail("gives the number " + std::to_string(id) + " to two tokens, the second being " +
                   in_quotes(entry.key));
      }
    }
    if (texts_.empty()) field.fail("is empty");
  }

  void read_added_tokens() {
    const auto list = root_.find("added_tokens");
    if (!list) return;
    std::size_t index = 0;
    for (const simdjson::dom::element one : list->array()) {
      read_added_token(list->element(index++, one));
    }
  }

  void read_added_token(const json_field& field) {
    const std::string_view text = field.at("content").text();
    if (text.empty() || text.size() > added_token_set::text_bytes_max) {
      field.at("content").fail("must have 1 to " + std::to_string(added_token_set::text_bytes_max) +
                               " bytes");
    }
    const auto id = static_cast<token_id>(field.at("id").integer(0, token_max));
    if (!name_token(id, text)) {
      field.at("id").fail("is " + std::to_string(id) + " for " + in_quotes(text) +
                          ", but the number or the text is another token's");
    }
    const bool special = field.flag_or("special", false);
    const added_token token{id, special || has_control_spelling(text),
                            field.flag_or("lstrip", false), field.flag_or("rstrip", false),
                            field.flag_or("single_word", false)};
    parts_->added_ids.emplace(text, id);
    added_.insert_or_assign(id, special);
    if (token.control) control_.insert_or_assign(id, true);
    if (!field.flag_or("normalized", true)) {
      parts_->raw_added.insert(text, token);
      return;
    }
    const std::string normal = parts_->normalize.apply(text, true);
    if (normal.empty() || normal.size() > added_token_set::text_bytes_max) {
      field.at("content").fail("cannot be found any more after normalisation");
    }
    parts_->normalized_added.insert(normal, token);
  }

  void fill_entries() {
    parts_->entries.resize(texts_.size());
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      if (texts_[id].data() == nullptr) continue;
      parts_->entries[id] = entry_for(static_cast<token_id>(id), texts_[id]);
    }
  }

  vocabulary_entry entry_for(token_id id, std::string_view text) {
    const auto added = added_.find(id);
    if (added != added_.end()) {
      const token_kind kind = added->second ? token_kind::control : token_kind::user_defined;
      return {by_bytes() ? std::string(text) : with_plain_spaces(text), kind, added->second};
    }
    if (by_bytes()) {
      return {spelled_bytes(text).value_or(std::string(text)), token_kind::normal, false};
    }
    const std::optional<unsigned char> byte = byte_of_token(text);
    if (byte && byte_fallback_) {
      parts_->model.byte_tokens[*byte] = id;
      return {std::string(1, static_cast<char>(*byte)), token_kind::byte, false};
    }
    return {with_plain_spaces(text), token_kind::normal, false};
  }

  void read_unknown() {
    const auto field = model_.find("unk_token");
    if (!field) return;
    const std::optional<token_id> id = id_of(field->text());
    if (!id) field->fail("is " + in_quotes(field->text()) + ", which the vocabulary lacks");
    parts_->model.unknown = id;
    parts_->entries[*id].kind = token_kind::unknown;
  }

  /// Whether merging or splitting may give the token. Control tokens never come out
  /// of ordinary text, and bytes only where a character has no token.
  [[nodiscard]] bool reachable(token_id id) const {
    const token_kind kind = parts_->entries[id].kind;
    return !control_.contains(id) && kind != token_kind::unknown && kind != token_kind::byte &&
           kind != token_kind::unused;
  }

  void read_symbols() {
    bpe_model& model = parts_->model;
    const bool whole = model_.flag_or("ignore_merges", false);
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const auto id = static_cast<token_id>(i);
      const std::string_view text = texts_[i];
      if (text.empty() || !reachable(id)) continue;
      if (by_bytes()) {
        const std::optional<std::string> bytes = spelled_bytes(text);
        if (!bytes) continue;
        if (bytes->size() == 1) model.byte_tokens[static_cast<unsigned char>(bytes->front())] = id;
        if (whole) model.whole_pieces.emplace(*bytes, id);
      } else {
        std::size_t end = 0;
        const char32_t character = read_code_point(text, end);
        if (end == text.size()) model.character_tokens.emplace(character, id);
        if (whole) model.whole_pieces.emplace(text, id);
      }
    }
  }

  void read_merges() {
    const json_field field = model_.at("merges");
    const simdjson::dom::array rules = field.array();
    if (rules.size() > merges_max) field.fail("has more than " + std::to_string(merges_max));
    parts_->model.merges = merge_table(rules.size());
    std::uint32_t rank = 0;
    std::string joined;
    for (const simdjson::dom::element rule : rules) {
      const auto [left, right] = sides_of(field, rank, rule);
      const token_id left_id = merged_id(field, rank, left);
      const token_id right_id = merged_id(field, rank, right);
      joined.assign(left).append(right);
      const token_id result = merged_id(field, rank, joined);
      if (reachable(result) && reachable(left_id) && reachable(right_id)) {
        parts_->model.merges.insert(left_id, right_id, {rank, result});
        if (!by_bytes()) parts_->model.allow_neighbours(joined);
      }
      ++rank;
    }
  }

  token_id merged_id(const json_field& field, std::uint32_t rank, std::string_view text) const {
    const std::optional<token_id> id = id_of(text);
    if (!id) {
      field.element(rank, {}).fail("names " + in_quotes(text) + ", which the vocabulary lacks");
    }
    return *id;
  }

  /// A rule is "left right" or, in newer files, ["left", "right"].
  static std::pair<std::string_view, std::string_view> sides_of(const json_field& field,
                                                                std::uint32_t rank,
                                                                simdjson::dom::element rule) {
    std::string_view text;
    if (rule.get(text) == simdjson::SUCCESS) {
      const std::size_t space = text.find(' ');
      if (space != std::string_view::npos && space > 0 && space + 1 < text.size()) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    simdjson::dom::array pair;
    if (rule.get(pair) == simdjson::SUCCESS && pair.size() == 2) {
      std::string_view left;
      std::string_view right;
      if (pair.at(0).get(left) == simdjson::SUCCESS && pair.at(1).get(right) == simdjson::SUCCESS &&
          !left.empty() && !right.empty()) {
        return {left, right};
      }
    }
    field.element(rank, rule).fail("is not a pair of tokens (\"left right\" or [left, right])");
  }

  json_field root_;
  json_field model_;
  std::shared_ptr<pipeline> parts_ = std::make_shared<pipeline>();
  bool byte_fallback_ = false;
  std::vector<std::string_view> texts_;
  std::unordered_map<std::string_view, token_id> ids_;
  std::unordered_map<token_id, bool> added_;    // and whether special
  std::unordered_map<token_id, bool> control_;  // those that steer the model
};

std::optional<token_id> named_token(const char* key, const std::optional<std::string>& text,
                                    const json_loader& loader) {
  if (!text) return std::nullopt;
  const std::optional<token_id> id = loader.id_of(*text);
  if (!id) {
    throw input_error("tokenizer_config.json: field \"" + std::string(key) + "\" is " +
                      in_quotes(*text) + ", which the vocabulary lacks");
  }
  return id;
}

/// What the configuration says outweighs the post-processor.
void apply_flag(std::optional<bool> flag, std::optional<token_id> token,
                std::vector<token_id>& side) {
  if (!flag || !token) return;
  const auto present = std::ranges::find(side, *token);
  if (*flag && present == side.end()) side.insert(side.begin(), *token);
  if (!*flag && present != side.end()) side.erase(present);
}

}  // namespace

tokenizer tokenizer::from_json(std::string_view tokenizer_json,
                               std::string_view tokenizer_config_json) {
  const json_document document(tokenizer_json, "tokenizer.json");
  json_loader loader{json_field(document)};
  const std::shared_ptr<pipeline> parts = loader.load();
  if (!tokenizer_config_json.empty()) {
    const tokenizer_config config = parse_tokenizer_config(tokenizer_config_json);
    parts->bos = named_token("bos_token", config.bos_token, loader);
    parts->eos = named_token("eos_token", config.eos_token, loader);
    apply_flag(config.add_bos_token, parts->bos, parts->prefix);
    apply_flag(config.add_eos_token, parts->eos, parts->suffix);
  } else if (!parts->prefix.empty()) {
    parts->bos = parts->prefix.front();
  }
  finish_end_tokens(*parts, {});
  return tokenizer(parts);
}

}  // namespace octavo::model
