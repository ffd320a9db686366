// What a template means: a tree of statements and expressions, as the parser makes
// it. Depths are bounded by limits::nesting, so that walking it needs little stack.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/chat/jinja/value.hpp"

namespace octavo::model::jinja {

struct expression;
using expression_ptr = std::unique_ptr<const expression>;
using expressions = std::vector<expression_ptr>;

struct statement;
using statements = std::vector<std::unique_ptr<const statement>>;

struct keyword_argument {
  std::string name;
  expression_ptr value;
};

struct call_arguments {
  expressions positional;
  std::vector<keyword_argument> named;
};

// Expressions.

struct constant {
  value content;
};
struct variable {
  std::string name;
};
struct list_literal {
  expressions elements;
  bool is_tuple = false;
};
struct dict_literal {
  std::vector<std::pair<expression_ptr, expression_ptr>> entries;
};
/// a.name
struct attribute {
  expression_ptr of;
  std::string name;
};
/// a[index]
struct item {
  expression_ptr of;
  expression_ptr index;
};
/// a[start:stop:step]; parts may be nullptr.
struct slice {
  expression_ptr of;
  expression_ptr start;
  expression_ptr stop;
  expression_ptr step;
};
struct call {
  expression_ptr callee;
  call_arguments arguments;
};
/// a|name(...); a is nullptr where the text of a block is filtered.
struct filter {
  expression_ptr of;
  std::string name;
  call_arguments arguments;
};
/// a is name(...)
struct test {
  expression_ptr of;
  std::string name;
  call_arguments arguments;
};
enum class unary_operator { negative, positive, logical_not };
struct unary {
  unary_operator op{};
  expression_ptr operand;
};
enum class binary_operator {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concatenate,
  logical_and,
  logical_or
};
struct binary {
  binary_operator op{};
  expression_ptr left;
  expression_ptr right;
};
enum class comparison_operator {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};
/// first op operand op operand ..., as in Python.
struct comparison {
  expression_ptr first;
  std::vector<std::pair<comparison_operator, expression_ptr>> rest;
};
/// a if condition else b; b may be nullptr.
struct conditional {
  expression_ptr condition;
  expression_ptr then;
  expression_ptr otherwise;
};

struct expression {
  int line = 0;
  /// Levels of expressions below this one, itself included.
  int depth = 1;
  std::variant<constant, variable, list_literal, dict_literal, attribute, item, slice, call, filter,
               test, unary, binary, comparison, conditional>
      node;
};

// Statements.

/// What a value is assigned to: a name, a name's attribute, or several targets.
struct target {
  std::string name;
  std::string attribute;
  std::vector<target> parts;
};

struct text_output {
  text_value text;
};
struct print {
  expression_ptr content;
};
struct if_branch {
  expression_ptr condition;  ///< nullptr: else
  statements body;
};
struct if_block {
  std::vector<if_branch> branches;
};
struct for_block {
  target to;
  expression_ptr iterable;
  expression_ptr condition;  ///< may be nullptr
  statements body;
  statements otherwise;
};
struct set_value {
  target to;
  expression_ptr content;
};
/// {% set x %}...{% endset %}, and {% filter %} where there is no target.
struct set_block {
  std::optional<target> to;
  expression_ptr filters;  ///< a chain that ends in a filter of nullptr; may be nullptr
  statements body;
};
struct macro {
  struct parameter {
    std::string name;
    expression_ptr fallback;  ///< may be nullptr
  };
  std::string name;
  std::vector<parameter> parameters;
  statements body;
};
/// {% with %} and {% generation %}: names set inside end with it.
struct scoped_block {
  std::vector<std::pair<target, expression_ptr>> assignments;
  statements body;
};
struct break_loop {};
struct continue_loop {};

struct statement {
  int line = 0;
  std::variant<text_output, print, if_block, for_block, set_value, set_block, macro, scoped_block,
               break_loop, continue_loop>
      node;
};

}  // namespace octavo::model::jinja
