// See json_text.hpp.
#include "web/gateway/api/json_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "model/tokenizer/utf8.hpp"

namespace octavo::api {
namespace {

constexpr auto replace = nlohmann::json::error_handler_t::replace;

}  // namespace

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string json_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, replace);
}

std::string valid_utf8(std::string_view bytes) {
  if (!model::first_invalid_utf8(bytes)) return std::string{bytes};
  model::utf8_assembler assembler;
  std::string text;
  assembler.push(bytes, text);
  assembler.flush(text);
  return text;
}

double shortest(float value, double otherwise) {
  if (!std::isfinite(value)) return otherwise;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double exact = value;
  std::from_chars(text.data(), end, exact);
  return exact;
}

std::string shown(const nlohmann::json& value) {
  constexpr std::size_t bytes_max = 80;
  // Long lists are not written out only to be cut.
  if ((value.is_array() || value.is_object()) && value.size() > bytes_max) {
    return "a" + std::string(value.is_array() ? " list" : "n object") + " of " +
           std::to_string(value.size());
  }
  if (value.is_string() && value.get_ref<const std::string&>().size() > bytes_max) {
    const auto& text = value.get_ref<const std::string&>();
    return json_quoted(valid_utf8(std::string_view{text}.substr(0, bytes_max))) + "…";
  }
  const std::string text = value.dump(-1, ' ', false, replace);
  if (text.size() <= bytes_max) return text;
  return valid_utf8(std::string_view{text}.substr(0, bytes_max)) + "…";
}

}  // namespace octavo::api
