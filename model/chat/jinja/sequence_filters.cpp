// Filters that order lists, and take single elements or sums of them.
#include <algorithm>
#include <array>

#include "model/chat/jinja/access.hpp"
#include "model/chat/jinja/filter_tables.hpp"
#include "model/chat/jinja/operators.hpp"
#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {
namespace {

value list_of(value_list elements, budget& work) {
  return make_list(std::move(elements), work.allowed());
}

/// What an element is compared by: itself or what a path leads to, in small letters
/// unless case counts.
value key_of(const value& element, const std::optional<std::string>& path, bool case_sensitive,
             budget& work) {
  value key = path ? follow(element, *path, work) : element;
  if (case_sensitive || !key.is_text()) return key;
  work.spend_text(key.text().size());
  return make_text(with_case(**key.as<text_value>(), letter_case::lower));
}

struct keyed {
  value key;
  value element;
};

std::vector<keyed> keyed_elements(const value& input, const std::optional<std::string>& path,
                                  bool case_sensitive, budget& work) {
  std::vector<keyed> list;
  for (const value& element : elements_of(input, work)) {
    list.push_back({key_of(element, path, case_sensitive, work), element});
  }
  return list;
}

bool is_before(const value& a, const value& b, budget& work) {
  return apply(comparison_operator::less, a, b, work);
}

value_list sorted(std::vector<keyed> list, bool reversed, budget& work) {
  std::ranges::stable_sort(list, [&](const keyed& a, const keyed& b) {
    return reversed ? is_before(b.key, a.key, work) : is_before(a.key, b.key, work);
  });
  value_list elements;
  for (keyed& one : list) elements.push_back(std::move(one.element));
  return elements;
}

value sort(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("sort", given, {"reverse", "case_sensitive", "attribute"});
  auto list = keyed_elements(input, a.text_if_any(2), a.flag_or(1, false), work);
  return list_of(sorted(std::move(list), a.flag_or(0, false), work), work);
}

value dictsort(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("dictsort", given, {"case_sensitive", "by", "reverse"});
  const dict_object* dict = input.dict();
  if (dict == nullptr) {
    throw operation_error("dictsort takes a dict, not a value of type " +
                          std::string(type_name(input)));
  }
  const std::string by = a.has(1) ? a.text(1).text() : "key";
  if (by != "key" && by != "value") throw operation_error("dictsort: by must be key or value");
  work.spend_elements(dict->entries.size());
  std::vector<keyed> list;
  for (const auto& [key, content] : dict->entries) {
    list.push_back({key_of(by == "key" ? key : content, {}, a.flag_or(0, false), work),
                    make_list({key, content}, work.allowed(), true)});
  }
  return list_of(sorted(std::move(list), a.flag_or(2, false), work), work);
}

value unique(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("unique", given, {"case_sensitive", "attribute"});
  value_list seen;
  value_list kept;
  for (keyed& one : keyed_elements(input, a.text_if_any(1), a.flag_or(0, false), work)) {
    const bool is_known = std::ranges::any_of(seen, [&](const value& old) {
      return apply(comparison_operator::equal, old, one.key, work);
    });
    if (is_known) continue;
    seen.push_back(std::move(one.key));
    kept.push_back(std::move(one.element));
  }
  return list_of(std::move(kept), work);
}

template <bool Largest>
value extreme(const value& input, const arguments& given, budget& work) {
  const bound_arguments a(Largest ? "max" : "min", given, {"case_sensitive", "attribute"});
  std::optional<keyed> best;
  for (keyed& one : keyed_elements(input, a.text_if_any(1), a.flag_or(0, false), work)) {
    const bool is_better = !best || (Largest ? is_before(best->key, one.key, work)
                                             : is_before(one.key, best->key, work));
    if (is_better) best = std::move(one);
  }
  return best ? best->element : make_undefined("an empty list has neither least nor most");
}

value sum(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("sum", given, {"attribute", "start"});
  const auto path = a.text_if_any(0);
  value total = a.get_or(1, std::int64_t{0});
  for (const value& element : elements_of(input, work)) {
    total = apply(binary_operator::add, total, path ? follow(element, *path, work) : element, work);
  }
  return total;
}

template <bool Last>
value end_of(const value& input, const arguments& given, budget& work) {
  const bound_arguments none(Last ? "last" : "first", given, {});
  if (input.list() == nullptr && !input.is_text()) {
    const value_list elements = elements_of(input, work);
    if (!elements.empty()) return Last ? elements.back() : elements.front();
  } else if (length_of(input) > 0) {
    return item_of(input, std::int64_t{Last ? -1 : 0}, work);
  }
  return make_undefined("there is no element, as there are none");
}

value list(const value& input, const arguments& given, budget& work) {
  const bound_arguments none("list", given, {});
  return list_of(elements_of(input, work), work);
}

value items(const value& input, const arguments& given, budget& work) {
  const bound_arguments none("items", given, {});
  value_list pairs;
  if (!input.is_undefined()) {
    if (input.dict() == nullptr) {
      throw operation_error("items takes a dict, not a value of type " +
                            std::string(type_name(input)));
    }
    work.spend_elements(input.dict()->entries.size());
    for (const auto& [key, content] : input.dict()->entries) {
      pairs.push_back(make_list({key, content}, work.allowed(), true));
    }
  }
  return list_of(std::move(pairs), work);
}

value reverse(const value& input, const arguments& given, budget& work) {
  const bound_arguments none("reverse", given, {});
  if (input.is_text()) return slice_of(input, {std::nullopt, std::nullopt, -1}, work);
  value_list elements = elements_of(input, work);
  std::ranges::reverse(elements);
  return list_of(std::move(elements), work);
}

constexpr std::array<builtin_filter, 11> filters{{
    {"sort", sort},
    {"dictsort", dictsort},
    {"unique", unique},
    {"min", extreme<false>},
    {"max", extreme<true>},
    {"sum", sum},
    {"first", end_of<false>},
    {"last", end_of<true>},
    {"list", list},
    {"items", items},
    {"reverse", reverse},
}};

}  // namespace

std::span<const builtin_filter> sequence_filters() {
  return filters;
}

}  // namespace octavo::model::jinja
