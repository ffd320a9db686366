// See value.hpp.
#include "model/chat/jinja/value.hpp"

#include <algorithm>
#include <cmath>

#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {
namespace {

// Far beyond any limit of steps, and far from overflowing when added.
constexpr std::int64_t weight_max = std::int64_t{1} << 60;

void include(value_extent& whole, const value& part) {
  const value_extent extent = extent_of(part);
  whole.depth = std::max(whole.depth, 1 + extent.depth);
  whole.weight = std::min(weight_max, whole.weight + extent.weight);
}

void check_depth(const value_extent& extent, const limits& allowed) {
  if (extent.depth > allowed.value_depth) {
    throw operation_error("lists and dicts are nested deeper than " +
                          std::to_string(allowed.value_depth) + " levels");
  }
}

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

bool both_whole(const value& a, const value& b) {
  return !a.is<double>() && !b.is<double>();
}

bool equal_dicts(const dict_object& a, const dict_object& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::ranges::all_of(a.entries, [&](const auto& entry) {
    const value* other = b.find(entry.first);
    return other != nullptr && equals(entry.second, *other);
  });
}

[[noreturn]] void no_iteration(const value& v) {
  throw operation_error("a value of type " + std::string(type_name(v)) +
                        " has no elements to go through");
}

}  // namespace

const value* dict_object::find(std::string_view key) const {
  const auto found = by_text.find(key);
  return found == by_text.end() ? nullptr : &entries[found->second].second;
}

const value* dict_object::find(const value& key) const {
  if (key.is_text()) return find(key.text());
  const auto found =
      std::ranges::find_if(entries, [&](const auto& entry) { return equals(entry.first, key); });
  return found == entries.end() ? nullptr : &found->second;
}

void dict_object::put(value key, value content) {
  if (const value* old = find(key)) {
    const auto place =
        std::ranges::find_if(entries, [&](const auto& entry) { return &entry.second == old; });
    place->second = std::move(content);
    return;
  }
  if (key.is_text()) by_text.emplace(std::string(key.text()), entries.size());
  entries.emplace_back(std::move(key), std::move(content));
}

std::string_view value::text() const {
  const auto* text = as<text_value>();
  return text == nullptr ? std::string_view{} : std::string_view((*text)->text());
}

const list_object* value::list() const {
  const auto* list = as<list_value>();
  return list == nullptr ? nullptr : list->get();
}

const dict_object* value::dict() const {
  const auto* dict = as<dict_value>();
  return dict == nullptr ? nullptr : dict->get();
}

value make_undefined(std::string what) {
  return undefined_value{std::make_shared<const std::string>(std::move(what))};
}

value make_text(marked_text text) {
  return text_value(std::make_shared<const marked_text>(std::move(text)));
}

value make_text(std::string_view text, bool trusted) {
  marked_text marked;
  marked.append(text, trusted);
  return make_text(std::move(marked));
}

value make_list(value_list elements, const limits& allowed, bool is_tuple) {
  list_object list{std::move(elements), is_tuple, {1, 1}};
  for (const value& element : list.elements) include(list.extent, element);
  check_depth(list.extent, allowed);
  return list_value(std::make_shared<const list_object>(std::move(list)));
}

value make_dict(dict_object dict, const limits& allowed) {
  dict.extent = {1, 1};
  for (const auto& [key, content] : dict.entries) {
    include(dict.extent, key);
    include(dict.extent, content);
  }
  check_depth(dict.extent, allowed);
  return dict_value(std::make_shared<const dict_object>(std::move(dict)));
}

value_extent extent_of(const value& v) {
  if (const auto* list = v.list()) return list->extent;
  if (const auto* dict = v.dict()) return dict->extent;
  return {0, 1 + static_cast<std::int64_t>(v.text().size() / 16)};
}

std::string_view type_name(const value& v) {
  struct names {
    std::string_view operator()(const undefined_value&) const { return "undefined"; }
    std::string_view operator()(none_value) const { return "none"; }
    std::string_view operator()(bool) const { return "boolean"; }
    std::string_view operator()(std::int64_t) const { return "integer"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const text_value&) const { return "string"; }
    std::string_view operator()(const list_value& l) const {
      return l->is_tuple ? "tuple" : "list";
    }
    std::string_view operator()(const dict_value&) const { return "dict"; }
    std::string_view operator()(const namespace_object*) const { return "namespace"; }
    std::string_view operator()(const std::shared_ptr<const loop_state>&) const { return "loop"; }
    std::string_view operator()(const macro_object*) const { return "macro"; }
    std::string_view operator()(const bound_method&) const { return "method"; }
    std::string_view operator()(global_function) const { return "function"; }
  };
  return std::visit(names{}, v.content());
}

bool is_true(const value& v) {
  if (const auto* flag = v.as<bool>()) return *flag;
  if (const auto* whole = v.as<std::int64_t>()) return *whole != 0;
  if (const auto* number = v.as<double>()) return *number != 0;
  if (v.is_text()) return !v.text().empty();
  if (const auto* list = v.list()) return !list->elements.empty();
  if (const auto* dict = v.dict()) return !dict->entries.empty();
  return !v.is_undefined() && !v.is_none();
}

bool is_number(const value& v) {
  return v.is<bool>() || v.is<std::int64_t>() || v.is<double>();
}

double as_double(const value& v) {
  if (const auto* flag = v.as<bool>()) return *flag ? 1 : 0;
  if (const auto* whole = v.as<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* number = v.as<double>()) return *number;
  throw operation_error("a number is needed, not a value of type " + std::string(type_name(v)));
}

std::int64_t as_integer(const value& v, std::string_view what) {
  if (const auto* flag = v.as<bool>()) return *flag ? 1 : 0;
  if (const auto* whole = v.as<std::int64_t>()) return *whole;
  throw operation_error(std::string(what) + " must be a whole number, not a value of type " +
                        std::string(type_name(v)));
}

bool equals(const value& a, const value& b) {
  if (is_number(a) && is_number(b)) {
    return both_whole(a, b) ? as_integer(a, "") == as_integer(b, "") : as_double(a) == as_double(b);
  }
  if (a.content().index() != b.content().index()) return false;
  if (a.is_text()) return a.text() == b.text();
  if (const auto* list = a.list()) {
    return list->is_tuple == b.list()->is_tuple &&
           std::ranges::equal(list->elements, b.list()->elements, equals);
  }
  if (const auto* dict = a.dict()) return equal_dicts(*dict, *b.dict());
  if (const auto* space = a.as<namespace_object*>()) return *space == *b.as<namespace_object*>();
  if (const auto* made = a.as<const macro_object*>()) return *made == *b.as<const macro_object*>();
  return a.is_undefined() || a.is_none();
}

int compare(const value& a, const value& b) {
  if (is_number(a) && is_number(b)) {
    return both_whole(a, b) ? three_way(as_integer(a, ""), as_integer(b, ""))
                            : three_way(as_double(a), as_double(b));
  }
  if (a.is_text() && b.is_text()) return three_way(a.text(), b.text());
  const auto* left = a.list();
  const auto* right = b.list();
  if (left == nullptr || right == nullptr || left->is_tuple != right->is_tuple) {
    throw operation_error("values of types " + std::string(type_name(a)) + " and " +
                          std::string(type_name(b)) + " have no order");
  }
  const auto [x, y] = std::ranges::mismatch(left->elements, right->elements, equals);
  if (x != left->elements.end() && y != right->elements.end()) return compare(*x, *y);
  return three_way(left->elements.size(), right->elements.size());
}

bool contains(const value& container, const value& element) {
  if (container.is_text()) {
    if (!element.is_text()) {
      throw operation_error("only a string can be in a string, not a value of type " +
                            std::string(type_name(element)));
    }
    return container.text().find(element.text()) != std::string_view::npos;
  }
  if (const auto* dict = container.dict()) return dict->find(element) != nullptr;
  if (const auto* list = container.list()) {
    return std::ranges::any_of(list->elements, [&](const value& v) { return equals(v, element); });
  }
  if (container.is_undefined()) return false;
  no_iteration(container);
}

value_list elements_of(const value& v, budget& work) {
  work.spend(length_of(v));
  if (const auto* list = v.list()) return list->elements;
  value_list elements;
  if (const auto* dict = v.dict()) {
    for (const auto& entry : dict->entries) elements.push_back(entry.first);
  } else if (const auto* text = v.as<text_value>()) {
    return characters_of(**text);
  }
  return elements;
}

std::int64_t length_of(const value& v) {
  if (const auto* list = v.list()) return std::ssize(list->elements);
  if (const auto* dict = v.dict()) return std::ssize(dict->entries);
  if (v.is_text()) return count_code_points(v.text());
  if (v.is_undefined()) return 0;
  no_iteration(v);
}

}  // namespace octavo::model::jinja
