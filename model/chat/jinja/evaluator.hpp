// Runs the tree of a template.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "model/chat/jinja/arguments.hpp"
#include "model/chat/jinja/ast.hpp"

namespace octavo::model::jinja {

/// What a template is given by name.
using variables = std::map<std::string, value, std::less<>>;

/// Names and values of one block that has its own.
struct scope {
  scope* outer = nullptr;
  variables names;
  bool is_captured = false;  ///< a macro may still look here when the block has ended
};

struct macro_object {
  const macro* definition = nullptr;
  scope* closure = nullptr;
};

/// One rendering. Namespaces, macros and the scopes they use live as long as it.
class evaluator {
 public:
  /// `now_s` is what clocks on the wall show, as seconds since 1970-01-01 00:00;
  /// templates find no strftime_now where it is not given.
  evaluator(const variables& given, std::optional<std::int64_t> now_s, const limits& allowed);

  /// The text that `body` writes. Throws input_error naming the line; what the
  /// template itself refuses comes with the template's words.
  marked_text run(const statements& body);

 private:
  enum class flow { next, break_loop, continue_loop };

  flow execute(const statements& body);
  flow execute(const statement& s);
  flow run_node(const text_output& s);
  flow run_node(const print& s);
  flow run_node(const if_block& s);
  flow run_node(const for_block& s);
  flow run_node(const set_value& s);
  flow run_node(const set_block& s);
  flow run_node(const macro& s);
  flow run_node(const scoped_block& s);
  flow run_node(break_loop /*s*/) { return flow::break_loop; }
  flow run_node(continue_loop /*s*/) { return flow::continue_loop; }

  value evaluate(const expression& e);
  value value_of(const constant& e) { return e.content; }
  value value_of(const variable& e);
  value value_of(const list_literal& e);
  value value_of(const dict_literal& e);
  value value_of(const attribute& e);
  value value_of(const item& e);
  value value_of(const slice& e);
  value value_of(const call& e);
  value value_of(const filter& e);
  value value_of(const test& e);
  value value_of(const unary& e);
  value value_of(const binary& e);
  value value_of(const comparison& e);
  value value_of(const conditional& e);

  arguments evaluate(const call_arguments& given);
  value filter_body(const expression* filters, marked_text body);
  value call_value(const value& callee, const arguments& given);
  value call_macro(const macro_object& called, const arguments& given);
  value call_global(global_function function, const arguments& given);
  value make_namespace(const arguments& given);
  value_list items_of(const for_block& loop);
  void assign(const target& to, const value& content);
  /// Runs `work` in a scope within `outer`, with its output going to `out`.
  template <class Work>
  auto within(scope* outer, marked_text* out, Work&& work);
  void write(const marked_text& text);

  std::optional<std::int64_t> now_s_;
  budget work_;
  std::deque<scope> scopes_;
  std::deque<namespace_object> namespaces_;
  std::deque<macro_object> macros_;
  scope* scope_ = nullptr;
  marked_text* out_ = nullptr;
};

}  // namespace octavo::model::jinja
