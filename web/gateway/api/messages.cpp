// See messages.hpp.
#include "web/gateway/api/messages.hpp"

#include <array>

#include "web/gateway/api/json_text.hpp"

namespace octavo::api {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Fields of messages and items that say nothing to a model that only reads text.
constexpr std::array unsupported{
    neutral_field{"refusal", R"([""])"},
    neutral_field{"audio"},
    neutral_field{"tool_calls", "[[]]"},
    neutral_field{"function_call"},
    neutral_field{"tool_call_id"},
    neutral_field{"annotations", "[[]]"},
    neutral_field{"phase"},
};

constexpr std::array of_templates{
    neutral_field{"tools", "[[]]"},
    neutral_field{"documents", "[[]]"},
    neutral_field{"chat_template"},
    neutral_field{"continue_final_message", "[false]"},
    // Templates write a first token where the model wants one.
    neutral_field{"add_special_tokens", "[false]"},
};

/// An answer's own part, as a client gives it back, has these too.
void skip_annotations(fields& part) {
  (void)part.find("annotations");
  (void)part.find("logprobs");
}

std::string part_text(const json& value, const std::string& path) {
  fields part{value, path};
  const json& type = part.need("type", "\"text\" is allowed");
  if (type != "text" && type != "input_text" && type != "output_text") {
    part.fail_value("type", type,
                    "only parts of text are supported (\"text\", \"input_text\", "
                    "\"output_text\")");
  }
  const json& text = part.need("text", "a string is expected");
  if (!text.is_string()) part.fail_value("text", text, "a string is expected");
  skip_annotations(part);
  part.finish();
  return text.get<std::string>();
}

std::string content_text(fields& message) {
  const json& content = message.need("content", "a string or a list of text parts is expected");
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array() || content.empty()) {
    message.fail_value("content", content, "a string or a list of text parts is expected");
  }
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (i > 0) text += '\n';
    text += part_text(content[i], message.path("content") + "[" + std::to_string(i) + "]");
  }
  return text;
}

std::string role_of(fields& message) {
  constexpr std::string_view allowed =
      "\"system\", \"developer\", \"user\" or \"assistant\" is allowed";
  const json& role = message.need("role", allowed);
  if (role == "developer") return "system";
  if (role != "system" && role != "user" && role != "assistant") {
    const bool of_tools = role == "tool" || role == "function";
    message.fail_value("role", role,
                       (of_tools ? "tools are not supported: " : "") + std::string{allowed});
  }
  return role.get<std::string>();
}

ordered_json read_message(const json& value, const std::string& path) {
  fields message{value, path};
  message.refuse_unsupported(unsupported);
  ordered_json turn = {{"role", role_of(message)}, {"content", content_text(message)}};
  for (const char* name : {"name", "reasoning_content"}) {
    if (const auto text = message.text(name)) turn[name] = *text;
  }
  message.finish();
  return turn;
}

ordered_json read_item(const json& value, const std::string& path) {
  fields item{value, path};
  const json* type = item.find("type");
  if (type != nullptr && *type != "message") {
    item.fail_value("type", *type, "only items of type \"message\" are supported");
  }
  constexpr std::array<std::string_view, 2> of_answers{"id", "status"};
  item.ignore(of_answers);
  ordered_json turn = {{"role", role_of(item)}, {"content", content_text(item)}};
  item.refuse_unsupported(unsupported);
  item.finish();
  return turn;
}

void check_chat(const std::string& path, const limits& bounds) {
  if (!bounds.chat_problem.empty()) throw invalid_request(path, path + ": " + bounds.chat_problem);
}

ordered_json read_list(const json& list, const std::string& path, const limits& bounds,
                       ordered_json (*read)(const json&, const std::string&)) {
  if (!list.is_array() || list.empty() ||
      list.size() > static_cast<std::size_t>(bounds.messages_max)) {
    throw invalid_request(path, path + " is " + shown(list) + "; a list of 1 to " +
                                    std::to_string(bounds.messages_max) + " messages is expected");
  }
  ordered_json turns = ordered_json::array();
  for (const json& value : list) {
    turns.push_back(read(value, path + "[" + std::to_string(turns.size()) + "]"));
  }
  return turns;
}

}  // namespace

ordered_json read_messages(const json& list, const std::string& path, const limits& bounds) {
  check_chat(path, bounds);
  return read_list(list, path, bounds, read_message);
}

ordered_json read_variables(fields& body) {
  constexpr std::size_t variables_max = 64;
  const json* variables = body.find("chat_template_kwargs");
  if (variables == nullptr) return nullptr;
  if (!variables->is_object() || variables->size() > variables_max) {
    body.fail_value("chat_template_kwargs", *variables,
                    "an object of at most " + std::to_string(variables_max) + " names is allowed");
  }
  return *variables;
}

conversation read_conversation(fields& body, const json& messages, const limits& bounds) {
  conversation talk;
  talk.messages = read_messages(messages, body.path("messages"), bounds);
  talk.add_generation_prompt = body.flag("add_generation_prompt", true);
  talk.variables = read_variables(body);
  body.refuse_unsupported(of_templates);
  return talk;
}

ordered_json read_input(const json& input, const std::string& path, const limits& bounds) {
  check_chat(path, bounds);
  if (!input.is_string()) return read_list(input, path, bounds, read_item);
  if (input.get_ref<const std::string&>().empty()) {
    throw invalid_request(path, path + " is empty; a text or a list of messages is expected");
  }
  return ordered_json::array({{{"role", "user"}, {"content", input.get<std::string>()}}});
}

}  // namespace octavo::api
