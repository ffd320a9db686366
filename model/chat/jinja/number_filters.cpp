// Filters that give numbers, and `default`.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "model/chat/jinja/access.hpp"
#include "model/chat/jinja/characters.hpp"
#include "model/chat/jinja/filter_tables.hpp"
#include "model/chat/jinja/operators.hpp"

namespace octavo::model::jinja {
namespace {

/// Below this every double is a whole number of 64 bits.
constexpr double whole_max = 9.2e18;

std::string_view number_text(const value& v) {
  std::string_view text = without_white_space_behind(v.text());
  text.remove_prefix(skip_white_space(text, 0));
  if (text.starts_with('+')) text.remove_prefix(1);
  return text;
}

template <class Number>
std::optional<Number> parsed(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> float_of(const value& v) {
  if (is_number(v)) return as_double(v);
  return v.is_text() ? parsed<double>(number_text(v)) : std::nullopt;
}

value int_filter(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("int", given, {"default", "base"});
  work.spend(extent_of(input).weight);
  if (a.integer_or(1, 10) != 10) throw operation_error("int: only base 10 is supported");
  refuse_undefined(input);
  if (input.is<std::int64_t>() || input.is<bool>()) return as_integer(input, "");
  if (input.is_text()) {
    if (const auto whole = parsed<std::int64_t>(number_text(input))) return *whole;
  }
  const auto number = float_of(input);
  if (!number || !(std::fabs(*number) < whole_max)) return a.get_or(0, std::int64_t{0});
  return static_cast<std::int64_t>(*number);
}

value float_filter(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("float", given, {"default"});
  work.spend(extent_of(input).weight);
  refuse_undefined(input);
  const auto number = float_of(input);
  return number ? value(*number) : a.get_or(0, 0.0);
}

value abs_filter(const value& input, const arguments& given, budget& /*work*/) {
  const bound_arguments none("abs", given, {});
  if (as_double(input) < 0) return apply(unary_operator::negative, input);
  return input.is<bool>() ? value(as_integer(input, "")) : input;
}

/// Half to even, decided by the exact decimal expansion as Python's round does.
double rounded(double number, int precision) {
  std::array<char, 512> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", precision, number);
  return std::strtod(buffer.data(), nullptr);
}

value round_filter(const value& input, const arguments& given, budget& /*work*/) {
  const bound_arguments a("round", given, {"precision", "method"});
  const std::int64_t precision = a.integer_or(0, 0);
  if (precision < 0 || precision > 100) {
    throw operation_error("round: the precision must be from 0 to 100");
  }
  const std::string method = a.has(1) ? a.text(1).text() : "common";
  const double number = as_double(input);
  if (method == "common") {
    if (!input.is<double>()) return as_integer(input, "");
    return std::isfinite(number) ? rounded(number, static_cast<int>(precision)) : number;
  }
  if (method != "ceil" && method != "floor") {
    throw operation_error("round: the method must be common, ceil or floor");
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  return (method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale)) / scale;
}

value length(const value& input, const arguments& given, budget& work) {
  const bound_arguments none("length", given, {});
  work.spend(static_cast<std::int64_t>(input.text().size() / 16));
  return length_of(input);
}

value default_filter(const value& input, const arguments& given, budget& /*work*/) {
  const bound_arguments a("default", given, {"default_value", "boolean"});
  const bool replaced = input.is_undefined() || (a.flag_or(1, false) && !is_true(input));
  return replaced ? a.get_or(0, make_text("", true)) : input;
}

constexpr std::array<builtin_filter, 8> filters{{
    {"default", default_filter},
    {"d", default_filter},
    {"length", length},
    {"count", length},
    {"int", int_filter},
    {"float", float_filter},
    {"abs", abs_filter},
    {"round", round_filter},
}};

}  // namespace

std::span<const builtin_filter> number_filters() {
  return filters;
}

}  // namespace octavo::model::jinja
