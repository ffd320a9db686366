// See tests.hpp.
#include "model/chat/jinja/tests.hpp"

#include <functional>
#include <map>

#include "model/chat/jinja/operators.hpp"
#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {
namespace {

using simple_test = bool (*)(const value&);

bool is_integer(const value& v) {
  return v.is<std::int64_t>();
}

bool is_callable(const value& v) {
  return v.is<const macro_object*>() || v.is<bound_method>() || v.is<global_function>();
}

/// What a loop can run over.
bool is_iterable(const value& v) {
  return v.is_text() || v.list() != nullptr || v.dict() != nullptr || v.is_undefined();
}

std::int64_t rest_of(const value& v, std::int64_t divisor) {
  if (divisor == 0) throw operation_error("division by zero");
  return divisor == -1 ? 0 : as_integer(v, "the tested value") % divisor;
}

bool has_case(const value& v, letter_case wanted) {
  const auto* text = v.as<text_value>();
  if (text == nullptr) return false;
  const marked_text other =
      with_case(**text, wanted == letter_case::upper ? letter_case::lower : letter_case::upper);
  return with_case(**text, wanted).text() == v.text() && other.text() != v.text();
}

/// Tests without arguments.
const std::map<std::string_view, simple_test>& simple_tests() {
  static const std::map<std::string_view, simple_test> all{
      {"defined", [](const value& v) { return !v.is_undefined(); }},
      {"undefined", [](const value& v) { return v.is_undefined(); }},
      {"none", [](const value& v) { return v.is_none(); }},
      {"string", [](const value& v) { return v.is_text(); }},
      {"mapping", [](const value& v) { return v.dict() != nullptr; }},
      {"iterable", is_iterable},
      {"sequence", is_iterable},
      {"number", is_number},
      {"integer", is_integer},
      {"float", [](const value& v) { return v.is<double>(); }},
      {"boolean", [](const value& v) { return v.is<bool>(); }},
      {"true", [](const value& v) { return v.is<bool>() && is_true(v); }},
      {"false", [](const value& v) { return v.is<bool>() && !is_true(v); }},
      {"callable", is_callable},
      {"odd", [](const value& v) { return rest_of(v, 2) != 0; }},
      {"even", [](const value& v) { return rest_of(v, 2) == 0; }},
      {"lower", [](const value& v) { return has_case(v, letter_case::lower); }},
      {"upper", [](const value& v) { return has_case(v, letter_case::upper); }},
  };
  return all;
}

/// Tests that compare with an argument.
const std::map<std::string_view, comparison_operator>& comparing_tests() {
  using enum comparison_operator;
  static const std::map<std::string_view, comparison_operator> all{{"==", equal},
                                                                   {"eq", equal},
                                                                   {"equalto", equal},
                                                                   {"!=", not_equal},
                                                                   {"ne", not_equal},
                                                                   {"<", less},
                                                                   {"lt", less},
                                                                   {"lessthan", less},
                                                                   {"<=", less_equal},
                                                                   {"le", less_equal},
                                                                   {">", greater},
                                                                   {"gt", greater},
                                                                   {"greaterthan", greater},
                                                                   {">=", greater_equal},
                                                                   {"ge", greater_equal},
                                                                   {"in", in}};
  return all;
}

}  // namespace

bool passes(std::string_view test, const value& v, const arguments& given, budget& work) {
  const std::string name = "the test '" + std::string(test) + "'";
  if (const auto found = simple_tests().find(test); found != simple_tests().end()) {
    const bound_arguments none(name, given, {});
    work.spend(extent_of(v).weight);
    return found->second(v);
  }
  if (const auto found = comparing_tests().find(test); found != comparing_tests().end()) {
    const bound_arguments a(name, given, {"other"});
    return apply(found->second, v, a.at(0), work);
  }
  if (test == "divisibleby") {
    const bound_arguments a(name, given, {"num"});
    return rest_of(v, as_integer(a.at(0), "the divisor")) == 0;
  }
  if (test == "sameas") {
    const bound_arguments a(name, given, {"other"});
    return v.content().index() == a.at(0).content().index() &&
           apply(comparison_operator::equal, v, a.at(0), work);
  }
  throw operation_error("there is no test '" + std::string(test) + "'");
}

}  // namespace octavo::model::jinja
