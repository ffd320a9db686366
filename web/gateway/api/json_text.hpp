// JSON values as text that is valid whatever bytes they hold.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace octavo::api {

/// One line; strings that are not UTF-8 get U+FFFD in place of what is not.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value);

/// A string as a JSON string, likewise.
[[nodiscard]] std::string json_quoted(std::string_view text);

/// Bytes as text, likewise.
[[nodiscard]] std::string valid_utf8(std::string_view bytes);

/// A number as the shortest decimal that reads back as the same float: 0.7, not
/// 0.699999988. Infinities and NaN give `otherwise`.
[[nodiscard]] double shortest(float value, double otherwise = 0);

/// A value for a message to a person, cut where it is long.
[[nodiscard]] std::string shown(const nlohmann::json& value);

}  // namespace octavo::api
