// Expressions and calls; statements and macros are in evaluator.cpp.
#include "model/chat/jinja/access.hpp"
#include "model/chat/jinja/clock_text.hpp"
#include "model/chat/jinja/evaluator.hpp"
#include "model/chat/jinja/filters.hpp"
#include "model/chat/jinja/methods.hpp"
#include "model/chat/jinja/operators.hpp"
#include "model/chat/jinja/print.hpp"
#include "model/chat/jinja/tests.hpp"

namespace octavo::model::jinja {

value evaluator::evaluate(const expression& e) {
  try {
    const budget::level level(work_);
    work_.spend(1);
    return std::visit([this](const auto& node) { return value_of(node); }, e.node);
  } catch (const operation_error& error) {
    fail_at(e.line, error.what());
  }
}

value evaluator::value_of(const variable& e) {
  for (const scope* s = scope_; s != nullptr; s = s->outer) {
    const auto found = s->names.find(e.name);
    if (found != s->names.end()) return found->second;
  }
  return make_undefined("'" + e.name + "' is undefined");
}

value evaluator::value_of(const list_literal& e) {
  value_list elements;
  work_.spend_elements(e.elements.size());
  for (const auto& element : e.elements) elements.push_back(evaluate(*element));
  return make_list(std::move(elements), work_.allowed(), e.is_tuple);
}

value evaluator::value_of(const dict_literal& e) {
  dict_object dict;
  for (const auto& [key, content] : e.entries) {
    value name = evaluate(*key);
    if (name.list() != nullptr || name.dict() != nullptr) {
      throw operation_error("a value of type " + std::string(type_name(name)) +
                            " cannot be the key of a dict");
    }
    work_.spend_elements(dict.entries.size());
    dict.put(std::move(name), evaluate(*content));
  }
  return make_dict(std::move(dict), work_.allowed());
}

value evaluator::value_of(const attribute& e) {
  return attribute_of(evaluate(*e.of), e.name);
}

value evaluator::value_of(const item& e) {
  const value of = evaluate(*e.of);
  return item_of(of, evaluate(*e.index), work_);
}

value evaluator::value_of(const slice& e) {
  const auto bound = [this](const expression_ptr& part) -> std::optional<std::int64_t> {
    if (part == nullptr) return std::nullopt;
    const value v = evaluate(*part);
    if (v.is_none()) return std::nullopt;
    return as_integer(v, "a bound of a slice");
  };
  const value of = evaluate(*e.of);
  const auto start = bound(e.start);
  const auto stop = bound(e.stop);
  return slice_of(of, {start, stop, bound(e.step).value_or(1)}, work_);
}

value evaluator::value_of(const call& e) {
  const value callee = evaluate(*e.callee);
  return call_value(callee, evaluate(e.arguments));
}

value evaluator::value_of(const filter& e) {
  const value input = evaluate(*e.of);
  return filtered(e.name, input, evaluate(e.arguments), work_);
}

value evaluator::value_of(const test& e) {
  const value tested = evaluate(*e.of);
  return passes(e.name, tested, evaluate(e.arguments), work_);
}

value evaluator::value_of(const unary& e) {
  return apply(e.op, evaluate(*e.operand));
}

value evaluator::value_of(const binary& e) {
  value left = evaluate(*e.left);
  if (e.op == binary_operator::logical_and) return is_true(left) ? evaluate(*e.right) : left;
  if (e.op == binary_operator::logical_or) return is_true(left) ? left : evaluate(*e.right);
  return apply(e.op, left, evaluate(*e.right), work_);
}

value evaluator::value_of(const comparison& e) {
  value left = evaluate(*e.first);
  for (const auto& [op, operand] : e.rest) {
    value right = evaluate(*operand);
    if (!apply(op, left, right, work_)) return false;
    left = std::move(right);
  }
  return true;
}

value evaluator::value_of(const conditional& e) {
  if (is_true(evaluate(*e.condition))) return evaluate(*e.then);
  if (e.otherwise != nullptr) return evaluate(*e.otherwise);
  return make_undefined("an inline 'if' without 'else' had a false condition");
}

arguments evaluator::evaluate(const call_arguments& given) {
  arguments evaluated;
  for (const auto& argument : given.positional) {
    evaluated.positional.push_back(evaluate(*argument));
  }
  for (const auto& [name, content] : given.named) {
    evaluated.named.emplace_back(name, evaluate(*content));
  }
  return evaluated;
}

value evaluator::call_value(const value& callee, const arguments& given) {
  refuse_undefined(callee);
  if (const auto* called = callee.as<const macro_object*>()) return call_macro(**called, given);
  if (const auto* method = callee.as<bound_method>()) {
    return method->method->run(*method->self, given, work_);
  }
  if (const auto* function = callee.as<global_function>()) return call_global(*function, given);
  throw operation_error("a value of type " + std::string(type_name(callee)) + " cannot be called");
}

value evaluator::make_namespace(const arguments& given) {
  namespace_object made;
  for (const value& more : given.positional) {
    const dict_object* dict = more.dict();
    if (dict == nullptr) throw operation_error("namespace() takes names and dicts");
    work_.spend_elements(dict->entries.size());
    for (const auto& [key, content] : dict->entries) {
      made.attributes.insert_or_assign(std::string(key.text()), content);
    }
  }
  for (const auto& [name, content] : given.named) made.attributes.insert_or_assign(name, content);
  namespaces_.push_back(std::move(made));
  return &namespaces_.back();
}

namespace {

value range_of(const arguments& given, budget& work) {
  const bound_arguments a("range()", given, {"start", "stop", "step"});
  const std::int64_t step = a.integer_or(2, 1);
  const std::int64_t first = as_integer(a.at(0), "a bound of range()");
  const std::int64_t start = a.has(1) ? first : 0;
  const std::int64_t stop = a.has(1) ? a.integer_or(1, 0) : first;
  if (step == 0) throw operation_error("range(): the step is 0");
  value_list numbers;
  for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (std::ssize(numbers) == work.allowed().range_length) {
      throw operation_error("range() has more than " + std::to_string(work.allowed().range_length) +
                            " numbers");
    }
    numbers.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  work.spend_elements(numbers.size());
  return make_list(std::move(numbers), work.allowed());
}

value dict_of(const arguments& given, budget& work) {
  dict_object dict;
  for (const value& more : given.positional) {
    if (more.dict() == nullptr || given.positional.size() > 1) {
      throw operation_error("dict() takes names and one dict");
    }
    work.spend(more.dict()->extent.weight);
    dict = *more.dict();
  }
  for (const auto& [name, content] : given.named) dict.put(make_text(name, true), content);
  return make_dict(std::move(dict), work.allowed());
}

}  // namespace

value evaluator::call_global(global_function function, const arguments& given) {
  switch (function) {
    case global_function::range:
      return range_of(given, work_);
    case global_function::dict:
      return dict_of(given, work_);
    case global_function::namespace_:
      return make_namespace(given);
    case global_function::raise_exception: {
      const bound_arguments a("raise_exception()", given, {"message"});
      throw input_error("the chat template refuses the conversation: " +
                        to_text(a.at(0), work_).text());
    }
    case global_function::strftime_now: {
      const bound_arguments a("strftime_now()", given, {"format"});
      work_.spend_text(a.text(0).text().size() * 16);
      return make_text(clock_text(a.text(0).text(), now_s_.value_or(0)), true);
    }
  }
  throw operation_error("there is no such function");
}

}  // namespace octavo::model::jinja
