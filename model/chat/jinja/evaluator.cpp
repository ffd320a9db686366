// Statements and macros; expressions are in evaluate_expression.cpp.
#include "model/chat/jinja/evaluator.hpp"

#include <algorithm>

#include "model/chat/jinja/filters.hpp"
#include "model/chat/jinja/print.hpp"
#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {

template <class Work>
auto evaluator::within(scope* outer, marked_text* out, Work&& work) {
  struct restored {
    evaluator& self;
    scope* scope_before;
    marked_text* out_before;
    ~restored() {
      scope* ended = std::exchange(self.scope_, scope_before);
      self.out_ = out_before;
      // Scopes end in the order opposite to their beginning, but for captured ones.
      if (!ended->is_captured && ended == &self.scopes_.back()) self.scopes_.pop_back();
    }
  };
  scopes_.push_back({outer, {}, false});
  const restored at_end{*this, std::exchange(scope_, &scopes_.back()), std::exchange(out_, out)};
  return work();
}

evaluator::evaluator(const variables& given, std::optional<std::int64_t> now_s,
                     const limits& allowed)
    : now_s_(now_s), work_(allowed) {
  scopes_.push_back({nullptr,
                     {{"range", global_function::range},
                      {"dict", global_function::dict},
                      {"namespace", global_function::namespace_},
                      {"raise_exception", global_function::raise_exception}},
                     true});
  scope_ = &scopes_.back();
  if (now_s) scope_->names.emplace("strftime_now", global_function::strftime_now);
  for (const auto& [name, content] : given) scope_->names.insert_or_assign(name, content);
}

marked_text evaluator::run(const statements& body) {
  marked_text out;
  within(scope_, &out, [&] { return execute(body); });
  return out;
}

evaluator::flow evaluator::execute(const statements& body) {
  for (const auto& s : body) {
    if (const flow then = execute(*s); then != flow::next) return then;
  }
  return flow::next;
}

evaluator::flow evaluator::execute(const statement& s) {
  try {
    const budget::level level(work_);
    work_.spend(1);
    return std::visit([this](const auto& node) { return run_node(node); }, s.node);
  } catch (const operation_error& error) {
    fail_at(s.line, error.what());
  }
}

void evaluator::write(const marked_text& text) {
  work_.spend_text(text.text().size());
  work_.spend_elements(text.trusted().size());
  work_.check_text(out_->text().size() + text.text().size());
  append(*out_, text);
}

evaluator::flow evaluator::run_node(const text_output& s) {
  write(*s.text);
  return flow::next;
}

evaluator::flow evaluator::run_node(const print& s) {
  write(to_text(evaluate(*s.content), work_));
  return flow::next;
}

evaluator::flow evaluator::run_node(const if_block& s) {
  for (const if_branch& branch : s.branches) {
    if (branch.condition == nullptr || is_true(evaluate(*branch.condition))) {
      return execute(branch.body);
    }
  }
  return flow::next;
}

value_list evaluator::items_of(const for_block& loop) {
  value_list items = elements_of(evaluate(*loop.iterable), work_);
  if (loop.condition == nullptr) return items;
  value_list kept;
  within(scope_, out_, [&] {
    for (value& item : items) {
      assign(loop.to, item);
      if (is_true(evaluate(*loop.condition))) kept.push_back(std::move(item));
    }
  });
  return kept;
}

evaluator::flow evaluator::run_node(const for_block& s) {
  auto state = std::make_shared<loop_state>();
  list_object items{items_of(s), false, {}};
  if (items.elements.empty()) {
    return within(scope_, out_, [&] { return execute(s.otherwise); });
  }
  state->items = std::make_shared<const list_object>(std::move(items));
  return within(scope_, out_, [&] {
    for (const value& item : state->items->elements) {
      work_.spend(1);
      scope_->names.clear();
      scope_->names.emplace("loop", std::shared_ptr<const loop_state>(state));
      assign(s.to, item);
      if (execute(s.body) == flow::break_loop) break;
      ++state->index0;
    }
    return flow::next;
  });
}

evaluator::flow evaluator::run_node(const set_value& s) {
  assign(s.to, evaluate(*s.content));
  return flow::next;
}

value evaluator::filter_body(const expression* filters, marked_text body) {
  if (filters == nullptr) return make_text(std::move(body));
  const auto& outermost = std::get<filter>(filters->node);
  const value input = filter_body(outermost.of.get(), std::move(body));
  return filtered(outermost.name, input, evaluate(outermost.arguments), work_);
}

evaluator::flow evaluator::run_node(const set_block& s) {
  marked_text body;
  const flow then = within(scope_, &body, [&] { return execute(s.body); });
  if (then != flow::next) return then;
  const value content = filter_body(s.filters.get(), std::move(body));
  if (s.to) {
    assign(*s.to, content);
  } else {
    write(to_text(content, work_));
  }
  return flow::next;
}

evaluator::flow evaluator::run_node(const macro& s) {
  for (scope* used = scope_; used != nullptr && !used->is_captured; used = used->outer) {
    used->is_captured = true;
  }
  macros_.push_back({&s, scope_});
  scope_->names.insert_or_assign(s.name, static_cast<const macro_object*>(&macros_.back()));
  return flow::next;
}

evaluator::flow evaluator::run_node(const scoped_block& s) {
  // The values of {% with %} do not see each other.
  value_list contents;
  for (const auto& [to, content] : s.assignments) contents.push_back(evaluate(*content));
  return within(scope_, out_, [&] {
    for (std::size_t i = 0; i < contents.size(); ++i) assign(s.assignments[i].first, contents[i]);
    return execute(s.body);
  });
}

void evaluator::assign(const target& to, const value& content) {
  if (!to.parts.empty()) {
    const value_list parts = elements_of(content, work_);
    if (parts.size() != to.parts.size()) {
      throw operation_error("a value of " + std::to_string(parts.size()) +
                            " elements is assigned to " + std::to_string(to.parts.size()) +
                            " names");
    }
    for (std::size_t i = 0; i < parts.size(); ++i) assign(to.parts[i], parts[i]);
    return;
  }
  if (to.attribute.empty()) {
    scope_->names.insert_or_assign(to.name, content);
    return;
  }
  const value of = value_of(variable{to.name});
  const auto* space = of.as<namespace_object*>();
  if (space == nullptr) {
    throw operation_error("'" + to.name + "." + to.attribute + "' is set, but '" + to.name +
                          "' is no namespace");
  }
  (*space)->attributes.insert_or_assign(to.attribute, content);
}

value evaluator::call_macro(const macro_object& called, const arguments& given) {
  const macro& definition = *called.definition;
  const auto& parameters = definition.parameters;
  if (given.positional.size() > parameters.size()) {
    throw operation_error("macro '" + definition.name + "' takes at most " +
                          std::to_string(parameters.size()) + " arguments, not " +
                          std::to_string(given.positional.size()));
  }
  marked_text out;
  within(called.closure, &out, [&] {
    for (std::size_t i = 0; i < given.positional.size(); ++i) {
      scope_->names.insert_or_assign(parameters[i].name, given.positional[i]);
    }
    for (const auto& [name, content] : given.named) {
      const bool known =
          std::ranges::find(parameters, name, &macro::parameter::name) != parameters.end();
      if (!known || !scope_->names.emplace(name, content).second) {
        throw operation_error("macro '" + definition.name + "' takes no argument '" + name +
                              "', or has it already");
      }
    }
    for (const macro::parameter& parameter : parameters) {
      if (scope_->names.contains(parameter.name)) continue;
      scope_->names.emplace(parameter.name, parameter.fallback != nullptr
                                                ? evaluate(*parameter.fallback)
                                                : make_undefined("parameter '" + parameter.name +
                                                                 "' was not provided"));
    }
    return execute(definition.body);
  });
  return make_text(std::move(out));
}

}  // namespace octavo::model::jinja
