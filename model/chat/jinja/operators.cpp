// See operators.hpp.
#include "model/chat/jinja/operators.hpp"

#include <cmath>

#include "model/chat/jinja/access.hpp"
#include "model/chat/jinja/format.hpp"
#include "model/chat/jinja/print.hpp"
#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {
namespace {

[[noreturn]] void do_not_fit(std::string_view op, const value& left, const value& right) {
  throw operation_error("values of types " + std::string(type_name(left)) + " and " +
                        std::string(type_name(right)) + " cannot be used with " + std::string(op));
}

[[noreturn]] void too_large() {
  throw operation_error("a whole number is too large");
}

bool is_whole(const value& v) {
  return v.is<std::int64_t>() || v.is<bool>();
}

value joined(const marked_text& left, const marked_text& right, budget& work) {
  work.spend_text(left.text().size() + right.text().size());
  work.spend_elements(left.trusted().size() + right.trusted().size());
  marked_text both = left;
  append(both, right);
  return make_text(std::move(both));
}

value add(const value& left, const value& right, budget& work) {
  if (left.is_text() && right.is_text()) {
    return joined(**left.as<text_value>(), **right.as<text_value>(), work);
  }
  const auto* a = left.list();
  const auto* b = right.list();
  if (a != nullptr && b != nullptr && a->is_tuple == b->is_tuple) {
    work.spend_elements(a->elements.size() + b->elements.size());
    value_list both = a->elements;
    both.insert(both.end(), b->elements.begin(), b->elements.end());
    return make_list(std::move(both), work.allowed(), a->is_tuple);
  }
  if (!is_number(left) || !is_number(right)) do_not_fit("+", left, right);
  if (!is_whole(left) || !is_whole(right)) return as_double(left) + as_double(right);
  std::int64_t sum = 0;
  if (__builtin_add_overflow(as_integer(left, ""), as_integer(right, ""), &sum)) too_large();
  return sum;
}

value subtract(const value& left, const value& right) {
  if (!is_number(left) || !is_number(right)) do_not_fit("-", left, right);
  if (!is_whole(left) || !is_whole(right)) return as_double(left) - as_double(right);
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(as_integer(left, ""), as_integer(right, ""), &difference)) too_large();
  return difference;
}

/// A text or list, `times` over.
value repeated(const value& of, std::int64_t times, budget& work) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size = of.is_text() ? of.text().size() : of.list()->elements.size();
  std::size_t whole = 0;
  if (__builtin_mul_overflow(count, size, &whole)) too_large();
  work.spend_text(whole);
  if (of.is_text()) {
    marked_text text;
    for (std::size_t i = 0; size > 0 && i < count; ++i) append(text, **of.as<text_value>());
    return make_text(std::move(text));
  }
  work.spend_elements(whole);
  value_list elements;
  for (std::size_t i = 0; size > 0 && i < count; ++i) {
    elements.insert(elements.end(), of.list()->elements.begin(), of.list()->elements.end());
  }
  return make_list(std::move(elements), work.allowed(), of.list()->is_tuple);
}

value multiply(const value& left, const value& right, budget& work) {
  const auto is_sequence = [](const value& v) { return v.is_text() || v.list() != nullptr; };
  if (is_sequence(left) && is_whole(right)) return repeated(left, as_integer(right, ""), work);
  if (is_sequence(right) && is_whole(left)) return repeated(right, as_integer(left, ""), work);
  if (!is_number(left) || !is_number(right)) do_not_fit("*", left, right);
  if (!is_whole(left) || !is_whole(right)) return as_double(left) * as_double(right);
  std::int64_t product = 0;
  if (__builtin_mul_overflow(as_integer(left, ""), as_integer(right, ""), &product)) too_large();
  return product;
}

/// Quotient rounded down, and the rest with the divisor's sign.
value divide_down(const value& left, const value& right, bool wants_rest) {
  if (!is_number(left) || !is_number(right)) do_not_fit(wants_rest ? "%" : "//", left, right);
  if (as_double(right) == 0) throw operation_error("division by zero");
  if (!is_whole(left) || !is_whole(right)) {
    const double b = as_double(right);
    double rest = std::fmod(as_double(left), b);
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
    return wants_rest ? rest : std::round((as_double(left) - rest) / b);
  }
  const std::int64_t a = as_integer(left, "");
  const std::int64_t b = as_integer(right, "");
  // The one quotient that does not fit is that of the lowest number.
  if (b == -1) return wants_rest ? value(std::int64_t{0}) : subtract(std::int64_t{0}, a);
  std::int64_t quotient = a / b;
  std::int64_t rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    --quotient;
  }
  return wants_rest ? rest : quotient;
}

value divide(const value& left, const value& right) {
  if (!is_number(left) || !is_number(right)) do_not_fit("/", left, right);
  if (as_double(right) == 0) throw operation_error("division by zero");
  return as_double(left) / as_double(right);
}

value power(const value& left, const value& right) {
  if (!is_number(left) || !is_number(right)) do_not_fit("**", left, right);
  if (!is_whole(left) || !is_whole(right) || as_integer(right, "") < 0) {
    if (as_double(left) == 0 && as_double(right) < 0) throw operation_error("division by zero");
    const double result = std::pow(as_double(left), as_double(right));
    if (std::isnan(result)) throw operation_error("a power is no real number");
    return result;
  }
  std::int64_t base = as_integer(left, "");
  std::int64_t result = 1;
  for (auto exponent = as_integer(right, ""); exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_large();
    // The last square is not used, and neither are those of 0, 1 and -1 large.
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return result;
}

}  // namespace

value apply(binary_operator op, const value& left, const value& right, budget& work) {
  if (op == binary_operator::concatenate) {
    return joined(to_text(left, work), to_text(right, work), work);
  }
  refuse_undefined(left);
  refuse_undefined(right);
  switch (op) {
    case binary_operator::add:
      return add(left, right, work);
    case binary_operator::subtract:
      return subtract(left, right);
    case binary_operator::multiply:
      return multiply(left, right, work);
    case binary_operator::divide:
      return divide(left, right);
    case binary_operator::floor_divide:
      return divide_down(left, right, false);
    case binary_operator::modulo:
      if (left.is_text()) return percent_format(**left.as<text_value>(), right, work);
      return divide_down(left, right, true);
    case binary_operator::power:
      return power(left, right);
    default:
      throw operation_error("this operator takes conditions");
  }
}

value apply(unary_operator op, const value& operand) {
  if (op == unary_operator::logical_not) return !is_true(operand);
  refuse_undefined(operand);
  if (const auto* number = operand.as<double>()) {
    return op == unary_operator::negative ? -*number : *number;
  }
  if (op == unary_operator::negative) return subtract(std::int64_t{0}, operand);
  return subtract(operand, std::int64_t{0});
}

bool apply(comparison_operator op, const value& left, const value& right, budget& work) {
  using enum comparison_operator;
  work.spend(extent_of(left).weight);
  work.spend(extent_of(right).weight);
  if (op == equal) return equals(left, right);
  if (op == not_equal) return !equals(left, right);
  if (op == in) return contains(right, left);
  if (op == not_in) return !contains(right, left);
  refuse_undefined(left);
  refuse_undefined(right);
  const int order = compare(left, right);
  switch (op) {
    case less:
      return order < 0;
    case less_equal:
      return order <= 0;
    case greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

}  // namespace octavo::model::jinja
