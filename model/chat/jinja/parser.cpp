// Statements; expressions are in expression_parser.cpp.
#include "model/chat/jinja/parser.hpp"

#include <algorithm>
#include <initializer_list>

#include "model/chat/jinja/expression_parser.hpp"

namespace octavo::model::jinja {
namespace {

using names = std::initializer_list<std::string_view>;

class parser {
 public:
  explicit parser(token_stream tokens) : tokens_(std::move(tokens)) {}

  statements run() { return body({}); }

 private:
  /// Statements up to a block that begins with one of `ends`, whose name is then the
  /// present token; to the end of the template if there are none.
  statements body(names ends) {
    const token_stream::level nested(tokens_);
    const int begin = tokens_.line();
    statements list;
    while (!tokens_.sees(token_type::end)) {
      const token& t = tokens_.take();
      if (t.type == token_type::text) {
        add(list, t.line, text_output{*make_text(t.text, true).as<text_value>()});
      } else if (t.type == token_type::print_begin) {
        add(list, t.line, print{expressions_.parse_tuple()});
        tokens_.expect(token_type::print_end);
      } else {
        const bool ended = std::ranges::any_of(
            ends, [&](std::string_view name) { return tokens_.sees_name(name); });
        if (ended) return list;
        one_block(list);
      }
    }
    if (ends.size() == 0) return list;
    fail_at(begin, "a block has no {% " + std::string(*(ends.end() - 1)) + " %}");
  }

  /// The statements within a block, up to one of `ends`.
  statements block_body(names ends) {
    tokens_.take_symbol(":");  // as in Python, allowed
    tokens_.expect(token_type::block_end);
    return body(ends);
  }
  /// The same where only one end is possible, which is taken too.
  statements block_body_to(std::string_view end) {
    auto list = block_body({end});
    tokens_.expect_name(end);
    return list;
  }

  static void add(statements& list, int line, decltype(statement::node) node) {
    list.push_back(std::make_unique<const statement>(statement{line, std::move(node)}));
  }

  void one_block(statements& list) {
    const int line = tokens_.line();
    const std::string name = tokens_.expect_any_name();
    if (name == "if") {
      add(list, line, if_statement());
    } else if (name == "for") {
      add(list, line, for_statement());
    } else if (name == "set") {
      set_statement(list, line);
    } else if (name == "macro") {
      add(list, line, macro_statement());
    } else if (name == "filter") {
      auto chain = expressions_.parse_filter_chain();
      add(list, line, set_block{std::nullopt, std::move(chain), block_body_to("endfilter")});
    } else if (name == "with") {
      add(list, line, with_statement());
    } else if (name == "generation") {
      add(list, line, scoped_block{{}, block_body_to("endgeneration")});
    } else if (name == "break" || name == "continue") {
      if (loops_ == 0) fail_at(line, "{% " + name + " %} stands outside of a loop");
      if (name == "break") {
        add(list, line, break_loop{});
      } else {
        add(list, line, continue_loop{});
      }
    } else {
      fail_at(line, "{% " + name + " %} is not known or not supported here");
    }
    tokens_.expect(token_type::block_end);
  }

  if_block if_statement() {
    if_block made;
    auto condition = expressions_.parse_tuple(false);
    for (;;) {
      auto inside = block_body({"elif", "else", "endif"});
      made.branches.push_back({std::move(condition), std::move(inside)});
      if (tokens_.take_name("elif")) {
        condition = expressions_.parse_tuple(false);
        continue;
      }
      if (tokens_.take_name("else")) {
        made.branches.push_back({nullptr, block_body({"endif"})});
      }
      tokens_.expect_name("endif");
      return made;
    }
  }

  for_block for_statement() {
    for_block made;
    made.to = expressions_.parse_target(false);
    tokens_.expect_name("in");
    made.iterable = expressions_.parse_tuple(false);
    if (tokens_.take_name("if")) made.condition = expressions_.parse();
    if (tokens_.sees_name("recursive"))
      fail_at(tokens_.line(), "recursive loops are not supported");
    ++loops_;
    made.body = block_body({"else", "endfor"});
    --loops_;
    if (tokens_.take_name("else")) made.otherwise = block_body({"endfor"});
    tokens_.expect_name("endfor");
    return made;
  }

  void set_statement(statements& list, int line) {
    target to = expressions_.parse_target(true);
    if (tokens_.take_symbol("=")) {
      add(list, line, set_value{std::move(to), expressions_.parse_tuple()});
      return;
    }
    expression_ptr chain;
    if (tokens_.take_symbol("|")) chain = expressions_.parse_filter_chain();
    add(list, line, set_block{std::move(to), std::move(chain), block_body_to("endset")});
  }

  macro macro_statement() {
    macro made;
    made.name = tokens_.expect_any_name();
    tokens_.expect_symbol("(");
    for (bool first = true; !tokens_.sees_symbol(")"); first = false) {
      if (!first) tokens_.expect_symbol(",");
      macro::parameter one{tokens_.expect_any_name(), nullptr};
      if (tokens_.take_symbol("=")) {
        one.fallback = expressions_.parse();
      } else if (!made.parameters.empty() && made.parameters.back().fallback != nullptr) {
        fail_at(tokens_.line(), "a parameter without a default stands behind one with a default");
      }
      made.parameters.push_back(std::move(one));
    }
    tokens_.expect_symbol(")");
    const int outer_loops = std::exchange(loops_, 0);
    made.body = block_body_to("endmacro");
    loops_ = outer_loops;
    return made;
  }

  scoped_block with_statement() {
    scoped_block made;
    while (!tokens_.sees(token_type::block_end)) {
      if (!made.assignments.empty()) tokens_.expect_symbol(",");
      target to{tokens_.expect_any_name(), {}, {}};
      tokens_.expect_symbol("=");
      auto content = expressions_.parse();
      made.assignments.emplace_back(std::move(to), std::move(content));
    }
    made.body = block_body_to("endwith");
    return made;
  }

  token_stream tokens_;
  expression_parser expressions_{tokens_};
  int loops_ = 0;
};

}  // namespace

statements parse(std::string_view source, const limits& allowed) {
  return parser(token_stream(tokenize(source, allowed), allowed)).run();
}

}  // namespace octavo::model::jinja
