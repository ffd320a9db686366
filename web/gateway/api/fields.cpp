// See fields.hpp.
#include "web/gateway/api/fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "web/gateway/api/json_text.hpp"

namespace octavo::api {
namespace {

using nlohmann::json;

std::string decimal(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string describe(const number_range& range) {
  return (range.excludes_least ? "a number above " : "a number from ") + decimal(range.least) +
         (range.excludes_least ? " up to " : " to ") + decimal(range.most) + " is allowed";
}

std::string describe_values(const json& values) {
  std::string text = "null";
  for (const json& value : values) text += " or " + value.dump();
  return text;
}

}  // namespace

std::optional<std::int64_t> whole_number(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return {};
  const double number = value.get<double>();
  constexpr double exact_max = 9007199254740992.0;  // 2^53
  if (std::abs(number) > exact_max || number != std::floor(number)) return {};
  return static_cast<std::int64_t>(number);
}

std::vector<token_id> read_tokens(const json& list, token_id vocab_size, const std::string& path) {
  std::vector<token_id> tokens;
  tokens.reserve(list.size());
  for (const json& value : list) {
    const auto number = whole_number(value);
    if (!number || *number < 0 || *number >= vocab_size) {
      const std::string where = path + "[" + std::to_string(tokens.size()) + "]";
      throw invalid_request(where, where + " is " + shown(value) + "; a token id from 0 to " +
                                       std::to_string(vocab_size - 1) + " is allowed");
    }
    tokens.push_back(static_cast<token_id>(*number));
  }
  return tokens;
}

fields::fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (object_.is_object()) return;
  const std::string what = path_.empty() ? "the body" : path_;
  throw invalid_request(path_, what + " is " + shown(object_) + "; an object is expected");
}

std::string fields::path(std::string_view name) const {
  return path_.empty() ? std::string{name} : path_ + "." + std::string{name};
}

void fields::fail(std::string_view name, const std::string& why) const {
  throw invalid_request(path(name), path(name) + " " + why);
}

void fields::fail_value(std::string_view name, const json& value, std::string_view allowed) const {
  fail(name, "is " + shown(value) + "; " + std::string{allowed});
}

const json* fields::find(std::string_view name) {
  seen_.push_back(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const json& fields::need(std::string_view name, std::string_view allowed) {
  const json* value = find(name);
  if (value == nullptr) fail(name, "is missing; " + std::string{allowed});
  return *value;
}

bool fields::flag(std::string_view name, bool otherwise) {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail_value(name, *value, "true or false is allowed");
  return value->get<bool>();
}

std::optional<std::int64_t> fields::integer(std::string_view name, std::int64_t least,
                                            std::int64_t most) {
  const json* value = find(name);
  if (value == nullptr) return {};
  const auto number = whole_number(*value);
  if (!number || *number < least || *number > most) {
    fail_value(name, *value,
               "a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                   " is allowed" +
                   (value->is_number_float() ? ", above 2^53 without point or exponent" : ""));
  }
  return number;
}

std::optional<double> fields::number(std::string_view name, const number_range& range) {
  const json* value = find(name);
  if (value == nullptr) return {};
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  const bool inside =
      (range.excludes_least ? number > range.least : number >= range.least) && number <= range.most;
  if (!inside) fail_value(name, *value, describe(range));
  return number;
}

std::optional<std::string> fields::text(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_string()) fail_value(name, *value, "a string is allowed");
  return value->get<std::string>();
}

std::vector<token_id> fields::tokens(std::string_view name, token_id vocab_size,
                                     std::size_t count_max) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_array() || value->size() > count_max) {
    fail_value(name, *value,
               "a list of at most " + std::to_string(count_max) + " token ids is allowed");
  }
  return read_tokens(*value, vocab_size, path(name));
}

void fields::ignore(std::span<const std::string_view> names) {
  for (const auto name : names) (void)text(name);
}

void fields::refuse_unsupported(std::span<const neutral_field> list) {
  for (const neutral_field& known : list) {
    const json* value = find(known.name);
    if (value == nullptr) continue;
    const json neutral = json::parse(known.values);
    if (std::ranges::find(neutral, *value) != neutral.end()) continue;
    fail(known.name, "is not supported; leave it out, or give " + describe_values(neutral) +
                         " (it is " + shown(*value) + ")");
  }
}

void fields::finish() const {
  for (const auto& [name, value] : object_.items()) {
    if (std::ranges::find(seen_, name) != seen_.end()) continue;
    const std::string full = path(shown(name));
    throw invalid_request(path(name).substr(0, 200), "unknown field " + full, "unknown_parameter");
  }
}

}  // namespace octavo::api
