// Filters that go through a list with another filter, a test or an attribute.
#include <algorithm>
#include <array>

#include "model/chat/jinja/access.hpp"
#include "model/chat/jinja/filter_tables.hpp"
#include "model/chat/jinja/filters.hpp"
#include "model/chat/jinja/tests.hpp"

namespace octavo::model::jinja {
namespace {

/// The arguments behind the first `count`, for a filter or test that is called.
arguments behind(const arguments& given, std::size_t count) {
  arguments rest;
  rest.positional.assign(given.positional.begin() + static_cast<std::ptrdiff_t>(count),
                         given.positional.end());
  rest.named = given.named;
  return rest;
}

/// Nothing for all that counts as false, as in Jinja: none too has no elements here.
value_list elements_or_none(const value& input, budget& work) {
  return is_true(input) ? elements_of(input, work) : value_list{};
}

std::string_view text_at(const arguments& given, std::size_t i, std::string_view what) {
  if (given.positional.size() <= i || !given.positional[i].is_text()) {
    throw operation_error(std::string(what) + " must be given as a string");
  }
  return given.positional[i].text();
}

value map(const value& input, const arguments& given, budget& work) {
  value_list results;
  if (given.positional.empty()) {
    const bound_arguments a("map", given, {"attribute", "default"});
    const std::string& path = a.text(0).text();
    for (const value& element : elements_or_none(input, work)) {
      results.push_back(follow(element, path, work, a.has(1) ? &a.at(1) : nullptr));
    }
  } else {
    const std::string_view name = text_at(given, 0, "the filter of map");
    const arguments rest = behind(given, 1);
    for (const value& element : elements_or_none(input, work)) {
      results.push_back(filtered(name, element, rest, work));
    }
  }
  return make_list(std::move(results), work.allowed());
}

/// select, reject, selectattr and rejectattr: those elements that pass a test, or
/// whose attribute does, or those that do not.
template <bool ByAttribute, bool Keeps>
value select(const value& input, const arguments& given, budget& work) {
  constexpr std::size_t used = ByAttribute ? 1 : 0;
  const std::string path(ByAttribute ? text_at(given, 0, "the attribute") : "");
  const bool has_test = given.positional.size() > used;
  const std::string_view test = has_test ? text_at(given, used, "the test") : "";
  const arguments rest = has_test ? behind(given, used + 1) : arguments{};
  value_list kept;
  for (const value& element : elements_or_none(input, work)) {
    const value tested = ByAttribute ? follow(element, path, work) : element;
    const bool passed = has_test ? passes(test, tested, rest, work) : is_true(tested);
    if (passed == Keeps) kept.push_back(element);
  }
  return make_list(std::move(kept), work.allowed());
}

constexpr std::array<builtin_filter, 5> filters{{
    {"map", map},
    {"select", select<false, true>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<true, false>},
}};

}  // namespace

std::span<const builtin_filter> selecting_filters() {
  return filters;
}

}  // namespace octavo::model::jinja
