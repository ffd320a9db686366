// Reads fields of JSON objects with errors that name the file and the field.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace octavo::model {

/// A JSON object and its name, so that every complaint says where and what.
class json_fields {
 public:
  json_fields(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  [[noreturn]] void fail(const std::string& key, const std::string& why) const {
    throw input_error(where_ + ": field \"" + key + "\" " + why);
  }

  [[nodiscard]] bool has(const std::string& key) const {
    const auto found = object_.find(key);
    return found != object_.end() && !found->is_null();
  }

  /// A whole number from 1 to `most`. The limits keep products of these numbers
  /// from overflowing and are far above any model.
  [[nodiscard]] std::int64_t count(const std::string& key, std::int64_t most) const {
    if (!has(key)) fail(key, "is missing (a positive whole number is needed)");
    const nlohmann::json& value = object_.at(key);
    const bool whole = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    if (!whole) {
      fail(key, "is " + value.dump() + "; a whole number from 1 to " + std::to_string(most) +
                    " is allowed");
    }
    return value.get<std::int64_t>();
  }

  [[nodiscard]] std::int64_t count_or(const std::string& key, std::int64_t most,
                                      std::int64_t fallback) const {
    return has(key) ? count(key, most) : fallback;
  }

  /// Is the field a number above 1? (Dense models may say "one expert".)
  [[nodiscard]] bool above_one(const std::string& key) const {
    return has(key) && object_.at(key).is_number() && object_.at(key).get<double>() > 1;
  }

  [[nodiscard]] bool flag_or(const std::string& key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!object_.at(key).is_boolean()) {
      fail(key, "is " + object_.at(key).dump() + "; true or false is allowed");
    }
    return object_.at(key).get<bool>();
  }

  [[nodiscard]] std::string text_or(const std::string& key, const std::string& fallback) const {
    if (!has(key)) return fallback;
    if (!object_.at(key).is_string()) {
      fail(key, "is " + object_.at(key).dump() + "; a string is allowed");
    }
    return object_.at(key).get<std::string>();
  }

  /// A finite number.
  [[nodiscard]] double number(const std::string& key) const {
    if (!has(key)) fail(key, "is missing (a number is needed)");
    const nlohmann::json& value = object_.at(key);
    if (!value.is_number()) fail(key, "is " + value.dump() + "; a number is allowed");
    return value.get<double>();
  }

  [[nodiscard]] double number_or(const std::string& key, double fallback) const {
    return has(key) ? number(key) : fallback;
  }

  /// A list of strings; empty where the field is missing.
  [[nodiscard]] std::vector<std::string> texts(const std::string& key) const {
    if (!has(key)) return {};
    std::vector<std::string> list;
    const nlohmann::json& value = object_.at(key);
    if (!value.is_array()) fail(key, "is " + value.dump() + "; a list of strings is allowed");
    for (const nlohmann::json& element : value) {
      if (!element.is_string()) fail(key, "holds " + element.dump() + "; strings are allowed");
      list.push_back(element.get<std::string>());
    }
    return list;
  }

  /// An object inside this one, named by its path in messages.
  [[nodiscard]] json_fields inner(const std::string& key) const {
    if (!has(key)) fail(key, "is missing (an object is needed)");
    const nlohmann::json& value = object_.at(key);
    if (!value.is_object()) fail(key, "must be an object");
    return {value, where_ + " (" + key + ")"};
  }

  [[nodiscard]] const nlohmann::json& object() const { return object_; }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] const nlohmann::json& at(const std::string& key) const { return object_.at(key); }

 private:
  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace octavo::model
