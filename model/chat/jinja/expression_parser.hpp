// The expressions within tags.
#pragma once

#include "model/chat/jinja/ast.hpp"
#include "model/chat/jinja/token_stream.hpp"

namespace octavo::model::jinja {

/// Parses expressions, with Jinja's precedence. All functions throw input_error
/// naming the line.
class expression_parser {
 public:
  explicit expression_parser(token_stream& tokens) : tokens_(tokens) {}

  /// One expression.
  expression_ptr parse();
  /// One expression, or several as a tuple. Without conditions an `if` behind it
  /// belongs to something else.
  expression_ptr parse_tuple(bool with_condition = true);
  /// {% filter name(...)|... %} or what is behind {% set x |: a chain of filters.
  expression_ptr parse_filter_chain();
  /// What may be assigned to.
  target parse_target(bool with_attribute);

 private:
  expression_ptr make(int line, decltype(expression::node) node);
  expression_ptr condition();
  expression_ptr logical_or();
  expression_ptr logical_and();
  expression_ptr logical_not();
  expression_ptr comparison_chain();
  expression_ptr sum();
  expression_ptr concatenation();
  expression_ptr product();
  expression_ptr power();
  expression_ptr signed_value(bool with_filters);
  expression_ptr primary();
  expression_ptr literal_text();
  expression_ptr parentheses();
  expression_ptr list();
  expression_ptr dict();
  expression_ptr postfixes(expression_ptr of);
  expression_ptr filters_and_tests(expression_ptr of);
  expression_ptr subscript(expression_ptr of);
  expression_ptr one_filter(expression_ptr of);
  expression_ptr one_test(expression_ptr of);
  call_arguments arguments();
  expression_ptr joined(int line, binary_operator op, expression_ptr left, expression_ptr right);
  target one_target(bool with_attribute);

  token_stream& tokens_;
};

}  // namespace octavo::model::jinja
