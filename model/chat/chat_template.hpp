// A conversation as the text a model was trained on, made with the model's own
// template (Jinja), the way transformers' apply_chat_template makes it.
//
//   const auto words = load_tokenizer(source);
//   const auto chat = chat_template::from(source);
//   const auto prompt = chat.render(R"([{"role":"user","content":"Hi"}])"_ordered_json, {});
//   const std::vector<token_id> ids = prompt.tokens(words);
//
// What comes with the conversation can never spell control tokens: a user who writes
// "<|im_end|>" gets those characters, not the token. Only the template's own text, the
// model's special tokens and the usual names of roles are trusted.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/chat/chat_source.hpp"
#include "model/chat/jinja/template.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace octavo::model {

struct chat_options {
  /// Ends with the beginning of the assistant's answer.
  bool add_generation_prompt = true;
  /// Lists that the template finds as `tools` and `documents`; null where there are none.
  nlohmann::ordered_json tools;
  nlohmann::ordered_json documents;
  /// More names for the template, such as {"enable_thinking": false}; an object or null.
  nlohmann::ordered_json variables;
  /// What clocks on the wall show, as seconds since 1970-01-01 00:00. Without it
  /// templates that ask for the date do with what they have.
  std::optional<std::int64_t> now_s;
  /// The template's name where a model has several. Empty: "tool_use" for tools where
  /// there is one, else "default".
  std::string variant;
};

/// A rendered conversation.
class rendered_prompt {
 public:
  explicit rendered_prompt(marked_text text) : text_(std::move(text)) {}

  [[nodiscard]] const std::string& text() const { return text_.text(); }
  /// The same text in parts, which lie within this object.
  [[nodiscard]] std::vector<text_part> parts() const;
  /// Its tokens. The template writes a first token where the model wants one, so none
  /// is added. Throws input_error for texts that are too long.
  [[nodiscard]] std::vector<token_id> tokens(const tokenizer& words) const;

 private:
  marked_text text_;
};

/// Immutable and cheap to copy; several threads may render at once.
class chat_template {
 public:
  /// Throws input_error naming the line of a template that is malformed.
  explicit chat_template(const chat_source& source);

  /// The template of a model on disk. Throws input_error where it has none.
  [[nodiscard]] static chat_template from(const checkpoint& source);

  /// Renders a list of messages, objects with a role and (mostly) a content. Throws
  /// input_error naming what is malformed, the line where the template cannot go on,
  /// or the template's own words where it refuses.
  [[nodiscard]] rendered_prompt render(const nlohmann::ordered_json& messages,
                                       const chat_options& options) const;

 private:
  [[nodiscard]] const jinja::compiled_template& choose(const chat_options& options) const;

  std::map<std::string, jinja::compiled_template, std::less<>> templates_;
  jinja::variables special_tokens_;
};

/// The messages of one question, with instructions before it where there are any.
[[nodiscard]] nlohmann::ordered_json question(const std::string& text,
                                              const std::optional<std::string>& system);

/// Tokens that end an assistant's turn, as the template writes it; none where it cannot
/// be told.
[[nodiscard]] std::vector<token_id> end_of_turn_tokens(const chat_template& chat,
                                                       const tokenizer& words);

}  // namespace octavo::model
