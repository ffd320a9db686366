// See expression_parser.hpp.
#include "model/chat/jinja/expression_parser.hpp"

#include <algorithm>
#include <charconv>
#include <set>

namespace octavo::model::jinja {
namespace {

int depth_of(const expression_ptr& e) {
  return e == nullptr ? 0 : e->depth;
}

int depth_of(const call_arguments& arguments) {
  int depth = 0;
  for (const auto& argument : arguments.positional) depth = std::max(depth, depth_of(argument));
  for (const auto& argument : arguments.named) depth = std::max(depth, depth_of(argument.value));
  return depth;
}

/// The deepest of the expressions directly below.
struct inner_depth {
  int operator()(const constant&) const { return 0; }
  int operator()(const variable&) const { return 0; }
  int operator()(const list_literal& l) const {
    int depth = 0;
    for (const auto& element : l.elements) depth = std::max(depth, depth_of(element));
    return depth;
  }
  int operator()(const dict_literal& d) const {
    int depth = 0;
    for (const auto& [key, content] : d.entries) {
      depth = std::max({depth, depth_of(key), depth_of(content)});
    }
    return depth;
  }
  int operator()(const attribute& a) const { return depth_of(a.of); }
  int operator()(const item& i) const { return std::max(depth_of(i.of), depth_of(i.index)); }
  int operator()(const slice& s) const {
    return std::max({depth_of(s.of), depth_of(s.start), depth_of(s.stop), depth_of(s.step)});
  }
  int operator()(const call& c) const {
    return std::max(depth_of(c.callee), depth_of(c.arguments));
  }
  int operator()(const filter& f) const { return std::max(depth_of(f.of), depth_of(f.arguments)); }
  int operator()(const test& t) const { return std::max(depth_of(t.of), depth_of(t.arguments)); }
  int operator()(const unary& u) const { return depth_of(u.operand); }
  int operator()(const binary& b) const { return std::max(depth_of(b.left), depth_of(b.right)); }
  int operator()(const comparison& c) const {
    int depth = depth_of(c.first);
    for (const auto& [op, operand] : c.rest) depth = std::max(depth, depth_of(operand));
    return depth;
  }
  int operator()(const conditional& c) const {
    return std::max({depth_of(c.condition), depth_of(c.then), depth_of(c.otherwise)});
  }
};

value number_of(const token& digits) {
  const char* begin = digits.text.data();
  const char* end = begin + digits.text.size();
  if (digits.type == token_type::integer) {
    std::int64_t whole = 0;
    const auto [read, error] = std::from_chars(begin, end, whole);
    if (error == std::errc{} && read == end) return whole;
  } else {
    double number = 0;
    const auto [read, error] = std::from_chars(begin, end, number);
    if (error == std::errc{} && read == end) return number;
  }
  fail_at(digits.line, "the number " + digits.text + " is too large");
}

std::optional<comparison_operator> comparison_of(const token& t) {
  using enum comparison_operator;
  if (t.type != token_type::symbol) return std::nullopt;
  if (t.text == "==") return equal;
  if (t.text == "!=") return not_equal;
  if (t.text == "<") return less;
  if (t.text == "<=") return less_equal;
  if (t.text == ">") return greater;
  if (t.text == ">=") return greater_equal;
  return std::nullopt;
}

std::optional<binary_operator> product_of(const token& t) {
  using enum binary_operator;
  if (t.type != token_type::symbol) return std::nullopt;
  if (t.text == "*") return multiply;
  if (t.text == "/") return divide;
  if (t.text == "//") return floor_divide;
  if (t.text == "%") return modulo;
  return std::nullopt;
}

}  // namespace

expression_ptr expression_parser::make(int line, decltype(expression::node) node) {
  const int depth = 1 + std::visit(inner_depth{}, node);
  if (depth > tokens_.allowed().nesting) {
    fail_at(line, "an expression is nested deeper than " +
                      std::to_string(tokens_.allowed().nesting) + " levels");
  }
  return std::make_unique<const expression>(expression{line, depth, std::move(node)});
}

expression_ptr expression_parser::joined(int line, binary_operator op, expression_ptr left,
                                         expression_ptr right) {
  return make(line, binary{op, std::move(left), std::move(right)});
}

expression_ptr expression_parser::parse() {
  const token_stream::level nested(tokens_);
  return condition();
}

expression_ptr expression_parser::condition() {
  auto result = logical_or();
  while (tokens_.sees_name("if")) {
    const int line = tokens_.take().line;
    auto when = logical_or();
    expression_ptr otherwise;
    if (tokens_.take_name("else")) otherwise = parse();
    result = make(line, conditional{std::move(when), std::move(result), std::move(otherwise)});
  }
  return result;
}

expression_ptr expression_parser::logical_or() {
  auto left = logical_and();
  while (tokens_.sees_name("or")) {
    const int line = tokens_.take().line;
    left = joined(line, binary_operator::logical_or, std::move(left), logical_and());
  }
  return left;
}

expression_ptr expression_parser::logical_and() {
  auto left = logical_not();
  while (tokens_.sees_name("and")) {
    const int line = tokens_.take().line;
    left = joined(line, binary_operator::logical_and, std::move(left), logical_not());
  }
  return left;
}

expression_ptr expression_parser::logical_not() {
  if (!tokens_.sees_name("not")) return comparison_chain();
  const token_stream::level nested(tokens_);
  const int line = tokens_.take().line;
  return make(line, unary{unary_operator::logical_not, logical_not()});
}

expression_ptr expression_parser::comparison_chain() {
  const int line = tokens_.line();
  comparison chain{sum(), {}};
  for (;;) {
    std::optional<comparison_operator> op = comparison_of(tokens_.now());
    if (op) {
      tokens_.take();
    } else if (tokens_.take_name("in")) {
      op = comparison_operator::in;
    } else if (tokens_.sees_name("not") && tokens_.ahead().text == "in") {
      tokens_.take();
      tokens_.expect_name("in");
      op = comparison_operator::not_in;
    } else {
      break;
    }
    chain.rest.emplace_back(*op, sum());
  }
  if (chain.rest.empty()) return std::move(chain.first);
  return make(line, std::move(chain));
}

expression_ptr expression_parser::sum() {
  auto left = concatenation();
  while (tokens_.sees_symbol("+") || tokens_.sees_symbol("-")) {
    const token& sign = tokens_.take();
    const auto op = sign.text == "+" ? binary_operator::add : binary_operator::subtract;
    left = joined(sign.line, op, std::move(left), concatenation());
  }
  return left;
}

expression_ptr expression_parser::concatenation() {
  auto left = product();
  while (tokens_.sees_symbol("~")) {
    const int line = tokens_.take().line;
    left = joined(line, binary_operator::concatenate, std::move(left), product());
  }
  return left;
}

expression_ptr expression_parser::product() {
  auto left = power();
  while (const auto op = product_of(tokens_.now())) {
    const int line = tokens_.take().line;
    left = joined(line, *op, std::move(left), power());
  }
  return left;
}

expression_ptr expression_parser::power() {
  auto left = signed_value(true);
  while (tokens_.sees_symbol("**")) {
    const int line = tokens_.take().line;
    left = joined(line, binary_operator::power, std::move(left), signed_value(true));
  }
  return left;
}

expression_ptr expression_parser::signed_value(bool with_filters) {
  expression_ptr result;
  if (tokens_.sees_symbol("-") || tokens_.sees_symbol("+")) {
    const token_stream::level nested(tokens_);
    const token& sign = tokens_.take();
    const auto op = sign.text == "-" ? unary_operator::negative : unary_operator::positive;
    result = make(sign.line, unary{op, signed_value(false)});
  } else {
    result = primary();
  }
  result = postfixes(std::move(result));
  return with_filters ? filters_and_tests(std::move(result)) : std::move(result);
}

expression_ptr expression_parser::primary() {
  const token& t = tokens_.now();
  switch (t.type) {
    case token_type::name:
      tokens_.take();
      if (t.text == "true" || t.text == "True") return make(t.line, constant{true});
      if (t.text == "false" || t.text == "False") return make(t.line, constant{false});
      if (t.text == "none" || t.text == "None") return make(t.line, constant{});
      return make(t.line, variable{t.text});
    case token_type::string:
      return literal_text();
    case token_type::integer:
    case token_type::floating:
      return make(t.line, constant{number_of(tokens_.take())});
    default:
      if (tokens_.sees_symbol("(")) return parentheses();
      if (tokens_.sees_symbol("[")) return list();
      if (tokens_.sees_symbol("{")) return dict();
      tokens_.unexpected("an expression");
  }
}

expression_ptr expression_parser::literal_text() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.sees(token_type::string)) text += tokens_.take().text;
  return make(line, constant{make_text(text, true)});
}

expression_ptr expression_parser::parentheses() {
  const int line = tokens_.take().line;
  if (tokens_.take_symbol(")")) return make(line, list_literal{{}, true});
  auto inside = parse_tuple();
  tokens_.expect_symbol(")");
  return inside;
}

expression_ptr expression_parser::list() {
  const int line = tokens_.take().line;
  list_literal made;
  while (!tokens_.sees_symbol("]")) {
    if (!made.elements.empty()) tokens_.expect_symbol(",");
    if (tokens_.sees_symbol("]")) break;
    made.elements.push_back(parse());
  }
  tokens_.expect_symbol("]");
  return make(line, std::move(made));
}

expression_ptr expression_parser::dict() {
  const int line = tokens_.take().line;
  dict_literal made;
  while (!tokens_.sees_symbol("}")) {
    if (!made.entries.empty()) tokens_.expect_symbol(",");
    if (tokens_.sees_symbol("}")) break;
    auto key = parse();
    tokens_.expect_symbol(":");
    auto content = parse();
    made.entries.emplace_back(std::move(key), std::move(content));
  }
  tokens_.expect_symbol("}");
  return make(line, std::move(made));
}

expression_ptr expression_parser::parse_tuple(bool with_condition) {
  const token_stream::level nested(tokens_);
  const int line = tokens_.line();
  const auto one = [&] { return with_condition ? parse() : logical_or(); };
  auto first = one();
  if (!tokens_.sees_symbol(",")) return first;
  list_literal tuple{{}, true};
  tuple.elements.push_back(std::move(first));
  while (tokens_.take_symbol(",")) {
    if (tokens_.sees(token_type::block_end) || tokens_.sees(token_type::print_end) ||
        tokens_.sees_symbol(")")) {
      break;
    }
    tuple.elements.push_back(one());
  }
  return make(line, std::move(tuple));
}

expression_ptr expression_parser::postfixes(expression_ptr of) {
  for (;;) {
    if (tokens_.sees_symbol(".") || tokens_.sees_symbol("[")) {
      of = subscript(std::move(of));
    } else if (tokens_.sees_symbol("(")) {
      const int line = tokens_.line();
      of = make(line, call{std::move(of), arguments()});
    } else {
      return of;
    }
  }
}

expression_ptr expression_parser::filters_and_tests(expression_ptr of) {
  for (;;) {
    if (tokens_.take_symbol("|")) {
      of = one_filter(std::move(of));
    } else if (tokens_.take_name("is")) {
      of = one_test(std::move(of));
    } else if (tokens_.sees_symbol("(")) {
      const int line = tokens_.line();
      of = make(line, call{std::move(of), arguments()});
    } else {
      return of;
    }
  }
}

expression_ptr expression_parser::subscript(expression_ptr of) {
  const int line = tokens_.line();
  if (tokens_.take_symbol(".")) {
    if (tokens_.sees(token_type::integer)) {
      auto index = make(line, constant{number_of(tokens_.take())});
      return make(line, item{std::move(of), std::move(index)});
    }
    return make(line, attribute{std::move(of), tokens_.expect_any_name()});
  }
  tokens_.expect_symbol("[");
  expression_ptr start;
  if (!tokens_.sees_symbol(":")) {
    start = parse();
    if (tokens_.take_symbol("]")) return make(line, item{std::move(of), std::move(start)});
  }
  slice cut{std::move(of), std::move(start), nullptr, nullptr};
  tokens_.expect_symbol(":");
  if (!tokens_.sees_symbol(":") && !tokens_.sees_symbol("]")) cut.stop = parse();
  if (tokens_.take_symbol(":") && !tokens_.sees_symbol("]")) cut.step = parse();
  tokens_.expect_symbol("]");
  return make(line, std::move(cut));
}

expression_ptr expression_parser::one_filter(expression_ptr of) {
  const int line = tokens_.line();
  filter made{std::move(of), tokens_.expect_any_name(), {}};
  if (tokens_.sees_symbol("(")) made.arguments = arguments();
  return make(line, std::move(made));
}

expression_ptr expression_parser::parse_filter_chain() {
  auto chain = one_filter(nullptr);
  while (tokens_.take_symbol("|")) chain = one_filter(std::move(chain));
  return chain;
}

expression_ptr expression_parser::one_test(expression_ptr of) {
  const int line = tokens_.line();
  const bool negated = tokens_.take_name("not");
  test made{std::move(of), tokens_.expect_any_name(), {}};
  static const std::set<std::string, std::less<>> operators{"else", "or", "and", "is"};
  const token& next = tokens_.now();
  if (tokens_.sees_symbol("(")) {
    made.arguments = arguments();
  } else if ((next.type == token_type::name && !operators.contains(next.text)) ||
             next.type == token_type::string || next.type == token_type::integer ||
             next.type == token_type::floating || tokens_.sees_symbol("[") ||
             tokens_.sees_symbol("{")) {
    const token_stream::level nested(tokens_);
    made.arguments.positional.push_back(postfixes(primary()));
  }
  auto result = make(line, std::move(made));
  return negated ? make(line, unary{unary_operator::logical_not, std::move(result)})
                 : std::move(result);
}

call_arguments expression_parser::arguments() {
  call_arguments list;
  tokens_.expect_symbol("(");
  for (bool first = true; !tokens_.sees_symbol(")"); first = false) {
    if (!first) tokens_.expect_symbol(",");
    if (tokens_.sees_symbol(")")) break;
    if (tokens_.sees_symbol("*") || tokens_.sees_symbol("**")) {
      fail_at(tokens_.line(), "arguments with * or ** are not supported");
    }
    const bool is_named = tokens_.sees(token_type::name) &&
                          tokens_.ahead().type == token_type::symbol && tokens_.ahead().text == "=";
    if (is_named) {
      std::string name = tokens_.take().text;
      tokens_.take();
      list.named.push_back({std::move(name), parse()});
    } else if (list.named.empty()) {
      list.positional.push_back(parse());
    } else {
      fail_at(tokens_.line(), "an argument without a name stands behind one with a name");
    }
  }
  tokens_.expect_symbol(")");
  return list;
}

target expression_parser::one_target(bool with_attribute) {
  if (tokens_.take_symbol("(")) {
    auto inside = parse_target(false);
    tokens_.expect_symbol(")");
    return inside;
  }
  static const std::set<std::string, std::less<>> constants{"true",  "True", "false",
                                                            "False", "none", "None"};
  if (constants.contains(tokens_.now().text)) tokens_.unexpected("a name to assign to");
  target one{tokens_.expect_any_name(), {}, {}};
  if (with_attribute && tokens_.take_symbol(".")) one.attribute = tokens_.expect_any_name();
  return one;
}

target expression_parser::parse_target(bool with_attribute) {
  const token_stream::level nested(tokens_);
  auto first = one_target(with_attribute);
  if (!tokens_.sees_symbol(",")) return first;
  target several;
  several.parts.push_back(std::move(first));
  while (tokens_.take_symbol(",")) {
    if (!tokens_.sees(token_type::name) && !tokens_.sees_symbol("(")) break;
    if (tokens_.sees_name("in")) break;
    several.parts.push_back(one_target(with_attribute));
  }
  return several;
}

}  // namespace octavo::model::jinja
