// See text_methods.hpp.
#include "model/chat/jinja/text_methods.hpp"

#include <algorithm>
#include <array>

#include "model/chat/jinja/characters.hpp"
#include "model/chat/jinja/format.hpp"
#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {
namespace {

const marked_text& text_of(const value& self) {
  return **self.as<text_value>();
}

void spend(const value& self, budget& work) {
  work.spend_text(self.text().size());
}

value list_of(std::vector<marked_text> parts, budget& work) {
  work.spend_elements(parts.size());
  value_list list;
  for (marked_text& part : parts) list.push_back(make_text(std::move(part)));
  return make_list(std::move(list), work.allowed());
}

template <side Where>
value strip_method(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("strip()", given, {"chars"});
  spend(self, work);
  const auto characters = a.text_if_any(0);
  if (characters) {
    // Each character of the text is looked for among these.
    work.spend(static_cast<std::int64_t>(characters->size() / 8) *
               static_cast<std::int64_t>(1 + self.text().size() / 64));
  }
  return make_text(strip(text_of(self), characters, Where));
}

template <letter_case Wanted>
value case_method(const value& self, const arguments& given, budget& work) {
  const bound_arguments none("a method that changes case", given, {});
  spend(self, work);
  return make_text(with_case(text_of(self), Wanted));
}

template <bool FromRight>
value split_method(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("split()", given, {"sep", "maxsplit"});
  spend(self, work);
  const auto separator = a.text_if_any(0);
  const std::int64_t most = a.integer_or(1, -1);
  if (separator) {
    if (separator->empty()) throw operation_error("split(): the separator is empty");
    return list_of(split(text_of(self), *separator, most, FromRight), work);
  }
  if (FromRight && most >= 0) {
    throw operation_error("rsplit() with a limit needs a separator here");
  }
  return list_of(split_at_white_space(text_of(self), most), work);
}

value splitlines_method(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("splitlines()", given, {"keepends"});
  spend(self, work);
  return list_of(split_lines(text_of(self), a.flag_or(0, false)), work);
}

/// Whether the text has one of the given texts at its begin or end.
template <class Has>
bool has_one(const bound_arguments& a, Has&& has) {
  const list_object* several = a.at(0).list();
  if (several == nullptr) return has(std::string_view(a.text(0).text()));
  return std::ranges::any_of(several->elements,
                             [&](const value& v) { return v.is_text() && has(v.text()); });
}

value startswith_method(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("startswith()", given, {"prefix"});
  work.spend(extent_of(a.at(0)).weight);
  return has_one(a, [&](std::string_view part) { return self.text().starts_with(part); });
}

value endswith_method(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("endswith()", given, {"suffix"});
  work.spend(extent_of(a.at(0)).weight);
  return has_one(a, [&](std::string_view part) { return self.text().ends_with(part); });
}

value replace_method(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("replace()", given, {"old", "new", "count"});
  spend(self, work);
  return make_text(replace(text_of(self), a.text(0).text(), a.text(1), a.integer_or(2, -1), work));
}

std::int64_t code_points_before(std::string_view text, std::size_t found) {
  return found == std::string_view::npos ? -1 : count_code_points(text.substr(0, found));
}

value find_text(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("find()", given, {"sub"});
  spend(self, work);
  return code_points_before(self.text(), self.text().find(a.text(0).text()));
}

value rfind_text(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("rfind()", given, {"sub"});
  spend(self, work);
  return code_points_before(self.text(), self.text().rfind(a.text(0).text()));
}

value index_text(const value& self, const arguments& given, budget& work) {
  const value found = find_text(self, given, work);
  if (as_integer(found, "") < 0) throw operation_error("index(): the text has no such part");
  return found;
}

value count_text(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("count()", given, {"sub"});
  spend(self, work);
  const std::string& part = a.text(0).text();
  if (part.empty()) return count_code_points(self.text()) + 1;
  return std::ssize(split(text_of(self), part, -1, false)) - 1;
}

value join_text(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("join()", given, {"iterable"});
  marked_text joined;
  bool first = true;
  for (const value& part : elements_of(a.at(0), work)) {
    if (!part.is_text()) {
      throw operation_error("join(): an element is no string but of type " +
                            std::string(type_name(part)));
    }
    work.spend_text(self.text().size() + part.text().size());
    work.check_text(joined.text().size() + self.text().size() + part.text().size());
    if (!first) append(joined, text_of(self));
    append(joined, text_of(part));
    first = false;
  }
  return make_text(std::move(joined));
}

value removeprefix(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("removeprefix()", given, {"prefix"});
  spend(self, work);
  const std::string& part = a.text(0).text();
  if (!self.text().starts_with(part)) return self;
  return make_text(part_of(text_of(self), part.size(), self.text().size()));
}

value removesuffix(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("removesuffix()", given, {"suffix"});
  spend(self, work);
  const std::string& part = a.text(0).text();
  if (!self.text().ends_with(part)) return self;
  return make_text(part_of(text_of(self), 0, self.text().size() - part.size()));
}

/// isdigit() and its like: true for all characters of a text that has some.
template <bool (*Is)(char32_t)>
value kind_method(const value& self, const arguments& given, budget& work) {
  const bound_arguments none("a method that asks for the kind of characters", given, {});
  spend(self, work);
  const std::string_view text = self.text();
  for (std::size_t at = 0; at < text.size();) {
    if (!Is(read_code_point(text, at))) return false;
  }
  return !text.empty();
}

constexpr std::array<builtin_method, 27> methods{{
    {"strip", strip_method<side::both>},
    {"lstrip", strip_method<side::left>},
    {"rstrip", strip_method<side::right>},
    {"split", split_method<false>},
    {"rsplit", split_method<true>},
    {"splitlines", splitlines_method},
    {"startswith", startswith_method},
    {"endswith", endswith_method},
    {"replace", replace_method},
    {"upper", case_method<letter_case::upper>},
    {"lower", case_method<letter_case::lower>},
    {"title", case_method<letter_case::title>},
    {"capitalize", case_method<letter_case::capitalize>},
    {"find", find_text},
    {"rfind", rfind_text},
    {"index", index_text},
    {"count", count_text},
    {"join", join_text},
    {"format", format_method},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"isdigit", kind_method<is_decimal>},
    {"isdecimal", kind_method<is_decimal>},
    {"isnumeric", kind_method<is_decimal>},
    {"isalpha", kind_method<is_letter>},
    {"isalnum", kind_method<is_letter_or_decimal>},
    {"isspace", kind_method<is_python_space>},
}};

}  // namespace

std::span<const builtin_method> text_methods() {
  return methods;
}

}  // namespace octavo::model::jinja
