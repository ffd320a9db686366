// Typed access to GGUF metadata; the parser has checked that values are whole.
#include "model/container/gguf_metadata.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "model/container/byte_reader.hpp"

namespace octavo::model {
namespace {

constexpr std::array<std::string_view, gguf_type_count> type_names{
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

std::string describe(const gguf_value& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value.content)) {
    return std::to_string(*number);
  }
  if (const auto* number = std::get_if<std::int64_t>(&value.content)) {
    return std::to_string(*number);
  }
  return "of type " + std::string(to_string(value.type));
}

/// The value as a signed number, or nothing where it is no integer or too large.
std::optional<std::int64_t> integer_of(const gguf_value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.content)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value.content)) {
    if (*number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(*number);
    }
  }
  return std::nullopt;
}

/// Every element of an array of numbers, converted.
template <class Stored, class Wanted>
std::vector<Wanted> converted(const gguf_array& array) {
  std::vector<Wanted> result(array.count);
  for (std::uint64_t i = 0; i < array.count; ++i) {
    Stored element;
    std::memcpy(&element, array.raw.data() + i * sizeof element, sizeof element);
    result[i] = static_cast<Wanted>(element);
  }
  return result;
}

}  // namespace

std::string_view to_string(gguf_type type) {
  const auto number = static_cast<std::size_t>(type);
  return number < type_names.size() ? type_names[number] : "unknown";
}

bool gguf_metadata::insert(std::string_view key, gguf_value value) {
  return values_.emplace(key, std::move(value)).second;
}

const gguf_value* gguf_metadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void gguf_metadata::fail(std::string_view key, std::string_view why) const {
  throw input_error(where_ + ": metadata key \"" + std::string(key) + "\" " + std::string(why));
}

const gguf_value& gguf_metadata::at(std::string_view key, std::string_view wanted) const {
  const gguf_value* value = find(key);
  if (value == nullptr) fail(key, "is missing (" + std::string(wanted) + " is needed)");
  return *value;
}

const gguf_array& gguf_metadata::array(std::string_view key, std::string_view wanted) const {
  const gguf_value& value = at(key, wanted);
  const auto* list = std::get_if<gguf_array>(&value.content);
  if (list == nullptr)
    fail(key, "is " + describe(value) + "; " + std::string(wanted) + " is needed");
  return *list;
}

std::int64_t gguf_metadata::whole(std::string_view key, std::int64_t most) const {
  const gguf_value& value = at(key, "a whole number");
  const auto number = integer_of(value);
  if (!number || *number < 0 || *number > most) {
    fail(key, "is " + describe(value) + "; a whole number from 0 to " + std::to_string(most) +
                  " is allowed");
  }
  return *number;
}

std::int64_t gguf_metadata::whole_or(std::string_view key, std::int64_t most,
                                     std::int64_t fallback) const {
  return has(key) ? whole(key, most) : fallback;
}

std::int64_t gguf_metadata::count(std::string_view key, std::int64_t most) const {
  const gguf_value& value = at(key, "a positive whole number");
  std::int64_t number = 0;
  if (std::holds_alternative<gguf_array>(value.content)) {
    const auto each = integers(key);
    if (each.empty()) fail(key, "is an empty array; a positive whole number is needed");
    if (std::adjacent_find(each.begin(), each.end(), std::not_equal_to<>()) != each.end()) {
      fail(key, "differs between layers, which is not supported");
    }
    number = each.front();
  } else {
    number = whole(key, most);
  }
  if (number < 1 || number > most) {
    fail(key, "is " + std::to_string(number) + "; a whole number from 1 to " +
                  std::to_string(most) + " is allowed");
  }
  return number;
}

std::int64_t gguf_metadata::count_or(std::string_view key, std::int64_t most,
                                     std::int64_t fallback) const {
  return has(key) ? count(key, most) : fallback;
}

double gguf_metadata::number(std::string_view key) const {
  const gguf_value& value = at(key, "a number");
  std::optional<double> number;
  if (const auto* real = std::get_if<double>(&value.content)) {
    number = *real;
  } else if (const auto integer = integer_of(value)) {
    number = static_cast<double>(*integer);
  }
  if (!number) fail(key, "is " + describe(value) + "; a number is needed");
  if (!std::isfinite(*number)) fail(key, "is not finite");
  return *number;
}

double gguf_metadata::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool gguf_metadata::flag_or(std::string_view key, bool fallback) const {
  const gguf_value* value = find(key);
  if (value == nullptr) return fallback;
  const auto* flag = std::get_if<bool>(&value->content);
  if (flag == nullptr) fail(key, "is " + describe(*value) + "; a bool is needed");
  return *flag;
}

std::string_view gguf_metadata::text(std::string_view key) const {
  const gguf_value& value = at(key, "a string");
  const auto* characters = std::get_if<std::string_view>(&value.content);
  if (characters == nullptr) fail(key, "is " + describe(value) + "; a string is needed");
  return *characters;
}

std::string_view gguf_metadata::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : fallback;
}

std::vector<std::string_view> gguf_metadata::strings(std::string_view key) const {
  const gguf_array& list = array(key, "an array of strings");
  if (list.element != gguf_type::string) {
    fail(key, "is an array of " + std::string(to_string(list.element)) + "; strings are needed");
  }
  byte_reader reader(list.raw, where_);
  std::vector<std::string_view> result(list.count);
  for (auto& element : result) element = reader.text(key);
  return result;
}

std::vector<float> gguf_metadata::floats(std::string_view key) const {
  const gguf_array& list = array(key, "an array of numbers");
  if (list.element == gguf_type::f32) return converted<float, float>(list);
  if (list.element == gguf_type::f64) return converted<double, float>(list);
  fail(key, "is an array of " + std::string(to_string(list.element)) + "; f32 is needed");
}

std::vector<std::int64_t> gguf_metadata::integers(std::string_view key) const {
  const gguf_array& list = array(key, "an array of whole numbers");
  switch (list.element) {
    case gguf_type::u8:
      return converted<std::uint8_t, std::int64_t>(list);
    case gguf_type::i8:
      return converted<std::int8_t, std::int64_t>(list);
    case gguf_type::u16:
      return converted<std::uint16_t, std::int64_t>(list);
    case gguf_type::i16:
      return converted<std::int16_t, std::int64_t>(list);
    case gguf_type::u32:
      return converted<std::uint32_t, std::int64_t>(list);
    case gguf_type::i32:
      return converted<std::int32_t, std::int64_t>(list);
    case gguf_type::u64:
      return converted<std::uint64_t, std::int64_t>(list);
    case gguf_type::i64:
      return converted<std::int64_t, std::int64_t>(list);
    default:
      fail(key,
           "is an array of " + std::string(to_string(list.element)) + "; whole numbers are needed");
  }
}

std::vector<bool> gguf_metadata::flags(std::string_view key) const {
  const gguf_array& list = array(key, "an array of bool");
  if (list.element != gguf_type::boolean) {
    fail(key, "is an array of " + std::string(to_string(list.element)) + "; bool is needed");
  }
  return converted<std::uint8_t, bool>(list);
}

}  // namespace octavo::model
