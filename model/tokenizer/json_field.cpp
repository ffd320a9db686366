// Reading JSON fields.
#include "model/tokenizer/json_field.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace octavo::model {
namespace {

// Nesting of a sound tokenizer.json stays below 10.
constexpr std::size_t depth_max = 64;
constexpr std::size_t capacity_min = 64;
constexpr std::size_t quoted_bytes_max = 60;

}  // namespace

json_document::json_document(std::string_view text, std::string name) : name_(std::move(name)) {
  // simdjson takes the text's size itself as the capacity it needs.
  const auto error = parser_.allocate(std::max(text.size(), capacity_min), depth_max);
  if (error == simdjson::SUCCESS) {
    const auto result = parser_.parse(text.data(), text.size());
    if (result.error() == simdjson::SUCCESS) {
      root_ = result.value_unsafe();
      return;
    }
    throw input_error(name_ + ": malformed JSON: " + simdjson::error_message(result.error()));
  }
  throw input_error(name_ + ": too large: " + simdjson::error_message(error));
}

std::string json_field::where() const {
  return path_.empty() ? file_ : file_ + ": field \"" + path_ + "\"";
}

void json_field::fail(const std::string& why) const {
  throw input_error(where() + " " + why);
}

std::optional<json_field> json_field::find(std::string_view key) const {
  simdjson::dom::element value;
  if (object().at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return member(key, value);
}

json_field json_field::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  json_field(value_, file_, path_.empty() ? std::string(key) : path_ + "." + std::string(key))
      .fail("is missing");
}

std::string_view json_field::text() const {
  std::string_view value;
  if (value_.get(value) != simdjson::SUCCESS) fail("is not a string");
  return value;
}

bool json_field::flag() const {
  bool value = false;
  if (value_.get(value) != simdjson::SUCCESS) fail("is not true or false");
  return value;
}

std::int64_t json_field::integer(std::int64_t least, std::int64_t most) const {
  std::int64_t value = 0;
  if (value_.get(value) != simdjson::SUCCESS || value < least || value > most) {
    fail("is not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

simdjson::dom::object json_field::object() const {
  simdjson::dom::object value;
  if (value_.get(value) != simdjson::SUCCESS) fail("is not an object");
  return value;
}

simdjson::dom::array json_field::array() const {
  simdjson::dom::array value;
  if (value_.get(value) != simdjson::SUCCESS) fail("is not an array");
  return value;
}

std::string_view json_field::text_or(std::string_view key, std::string_view otherwise) const {
  const auto found = find(key);
  return found ? found->text() : otherwise;
}

bool json_field::flag_or(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->flag() : otherwise;
}

json_field json_field::element(std::size_t index, simdjson::dom::element value) const {
  return {value, file_, path_ + "[" + std::to_string(index) + "]"};
}

json_field json_field::member(std::string_view key, simdjson::dom::element value) const {
  const std::string name(key);
  return {value, file_, path_.empty() ? name : path_ + "." + name};
}

std::string in_quotes(std::string_view text) {
  if (text.size() <= quoted_bytes_max) return '"' + std::string(text) + '"';
  std::size_t end = quoted_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return '"' + std::string(text.substr(0, end)) + "…\"";
}

}  // namespace octavo::model
