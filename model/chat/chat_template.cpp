// See chat_template.hpp.
#include "model/chat/chat_template.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "model/chat/jinja/from_json.hpp"

namespace octavo::model {
namespace {

using nlohmann::ordered_json;

/// Roles that templates put between the marks of control tokens, as in "<|user|>". Only
/// these may complete such a token.
constexpr std::array<std::string_view, 9> known_roles{"system",    "developer", "user",
                                                      "assistant", "tool",      "function",
                                                      "ipython",   "model",     "environment"};

jinja::value message_value(const ordered_json& message, std::size_t number) {
  const std::string what = "message " + std::to_string(number);
  if (!message.is_object()) {
    throw input_error(what + ": is of type " + message.type_name() +
                      "; an object with \"role\" and \"content\" is expected");
  }
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string()) {
    throw input_error(what + ": field \"role\" is missing or no string");
  }
  const jinja::value converted = jinja::from_json(message, what);
  const auto& name = role->get_ref<const std::string&>();
  if (std::ranges::find(known_roles, name) == known_roles.end()) return converted;
  jinja::dict_object dict = *converted.dict();
  dict.put(jinja::make_text("role", false), jinja::make_text(name, true));
  return jinja::make_dict(std::move(dict), {});
}

jinja::value messages_value(const ordered_json& messages) {
  if (!messages.is_array()) throw input_error("messages: a list is expected");
  jinja::value_list list;
  for (const auto& message : messages) list.push_back(message_value(message, list.size()));
  return jinja::make_list(std::move(list), {});
}

jinja::value list_or_none(const ordered_json& list, const char* what) {
  if (!list.is_null() && !list.is_array()) {
    throw input_error(std::string(what) + ": a list is expected");
  }
  return jinja::from_json(list, what);
}

}  // namespace

std::vector<text_part> rendered_prompt::parts() const {
  std::vector<text_part> list;
  const std::string_view all = text_.text();
  std::size_t at = 0;
  text_.for_each_run({0, all.size()}, [&](std::string_view run, bool trusted) {
    list.push_back({all.substr(at, run.size()), trusted});
    at += run.size();
  });
  return list;
}

std::vector<token_id> rendered_prompt::tokens(const tokenizer& words) const {
  return words.encode_parts(parts());
}

chat_template::chat_template(const chat_source& source) {
  for (const auto& [name, text] : source.templates) {
    templates_.emplace(name, jinja::compiled_template(text));
  }
  for (const auto& [name, text] : source.special_tokens) {
    special_tokens_.emplace(name, jinja::make_text(text, true));
  }
}

chat_template chat_template::from(const checkpoint& source) {
  chat_source read = read_chat_source(source);
  if (read.templates.empty()) {
    throw input_error(source.path() +
                      ": has no chat template (tokenizer.chat_template in a GGUF file; "
                      "chat_template.jinja or \"chat_template\" in tokenizer_config.json in a "
                      "directory)");
  }
  return chat_template(read);
}

const jinja::compiled_template& chat_template::choose(const chat_options& options) const {
  const auto named = [this](std::string_view name) { return templates_.find(name); };
  auto found = templates_.end();
  if (!options.variant.empty()) {
    found = named(options.variant);
  } else {
    if (!options.tools.is_null()) found = named("tool_use");
    if (found == templates_.end()) found = named("default");
    if (found == templates_.end() && templates_.size() == 1) found = templates_.begin();
  }
  if (found != templates_.end()) return found->second;
  std::string names;
  for (const auto& [name, compiled] : templates_) names += (names.empty() ? "" : ", ") + name;
  throw input_error("chat template \"" +
                    (options.variant.empty() ? std::string("default") : options.variant) +
                    "\": the model has none of this name; it has " + names);
}

rendered_prompt chat_template::render(const ordered_json& messages,
                                      const chat_options& options) const {
  jinja::variables given = special_tokens_;
  if (!options.variables.is_null()) {
    if (!options.variables.is_object()) {
      throw input_error("variables of the chat template: an object is expected");
    }
    for (const auto& [name, content] : options.variables.items()) {
      given.insert_or_assign(name, jinja::from_json(content, "variable \"" + name + "\""));
    }
  }
  given.insert_or_assign("messages", messages_value(messages));
  given.insert_or_assign("tools", list_or_none(options.tools, "tools"));
  given.insert_or_assign("documents", list_or_none(options.documents, "documents"));
  given.insert_or_assign("add_generation_prompt", options.add_generation_prompt);
  return rendered_prompt(choose(options).render(given, options.now_s));
}

ordered_json question(const std::string& text, const std::optional<std::string>& system) {
  ordered_json messages = ordered_json::array();
  if (system) messages.push_back({{"role", "system"}, {"content", *system}});
  messages.push_back({{"role", "user"}, {"content", text}});
  return messages;
}

std::vector<token_id> end_of_turn_tokens(const chat_template& chat, const tokenizer& words) {
  constexpr std::string_view answer = "octavo";
  const ordered_json messages = {{{"role", "user"}, {"content", "Hi"}},
                                 {{"role", "assistant"}, {"content", answer}}};
  chat_options options;
  options.add_generation_prompt = false;
  options.now_s = 0;
  try {
    const rendered_prompt prompt = chat.render(messages, options);
    const std::size_t found = prompt.text().rfind(answer);
    if (found == std::string::npos) return {};
    const std::string_view behind = std::string_view(prompt.text()).substr(found + answer.size());
    const auto tokens = words.encode(behind, {.add_special = false, .parse_special = true});
    // White space may stand between.
    for (std::size_t i = 0; i < std::min<std::size_t>(tokens.size(), 2); ++i) {
      if (words.is_special(tokens[i])) return {tokens[i]};
    }
  } catch (const input_error&) {
    // A template that refuses this conversation says nothing about turns.
  }
  return {};
}

}  // namespace octavo::model
