// Filters that give texts; all but tojson take any value by its text.
#include <algorithm>
#include <array>

#include "model/chat/jinja/access.hpp"
#include "model/chat/jinja/filter_tables.hpp"
#include "model/chat/jinja/print.hpp"
#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {
namespace {

template <letter_case Wanted>
value case_filter(const value& input, const arguments& given, budget& work) {
  const bound_arguments none("a filter that changes case", given, {});
  return make_text(with_case(to_text(input, work), Wanted));
}

value trim(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("trim", given, {"chars"});
  const marked_text text = to_text(input, work);
  const auto characters = a.text_if_any(0);
  if (characters) {
    work.spend(static_cast<std::int64_t>(characters->size() / 8) *
               static_cast<std::int64_t>(1 + text.text().size() / 64));
  }
  return make_text(strip(text, characters, side::both));
}

value string(const value& input, const arguments& given, budget& work) {
  const bound_arguments none("string", given, {});
  return make_text(to_text(input, work));
}

value replace_filter(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("replace", given, {"old", "new", "count"});
  const std::int64_t most = a.has(2) && !a.at(2).is_none() ? a.integer_or(2, -1) : -1;
  return make_text(replace(to_text(input, work), to_text(a.at(0), work).text(),
                           to_text(a.at(1), work), most, work));
}

value join(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("join", given, {"d", "attribute"});
  const marked_text between = a.has(0) ? to_text(a.at(0), work) : marked_text{};
  marked_text joined;
  bool first = true;
  for (const value& element : elements_of(input, work)) {
    const marked_text part =
        to_text(a.has(1) ? follow(element, a.text(1).text(), work) : element, work);
    work.spend_text(between.text().size() + part.text().size());
    work.check_text(joined.text().size() + between.text().size() + part.text().size());
    if (!first) append(joined, between);
    append(joined, part);
    first = false;
  }
  return make_text(std::move(joined));
}

value indent(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("indent", given, {"width", "first", "blank"});
  marked_text margin;
  if (a.has(0) && a.at(0).is_text()) {
    margin = a.text(0);
  } else {
    const std::int64_t width = a.integer_or(0, 4);
    work.spend_text(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)));
    margin.append(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '),
                  true);
  }
  marked_text text = to_text(input, work);
  text.append("\n", true);
  marked_text result;
  bool is_first = true;
  for (const marked_text& line : split_lines(text, false)) {
    work.spend_text(margin.text().size() + line.text().size());
    work.check_text(result.text().size() + margin.text().size() + line.text().size());
    if (!is_first) result.append("\n", true);
    const bool wanted =
        is_first ? a.flag_or(1, false) : a.flag_or(2, false) || !line.text().empty();
    if (wanted) append(result, margin);
    append(result, line);
    is_first = false;
  }
  return make_text(std::move(result));
}

/// Spaces for a number, the text itself for a text.
std::optional<std::string> indent_of(const value& v, budget& work) {
  if (v.is_none()) return std::nullopt;
  if (v.is_text()) return std::string(v.text());
  const auto width = std::max<std::int64_t>(as_integer(v, "argument 'indent' of tojson"), 0);
  work.spend_text(static_cast<std::size_t>(width));
  return std::string(static_cast<std::size_t>(width), ' ');
}

/// As transformers defines it: Unicode as it stands, nothing escaped for HTML.
value tojson(const value& input, const arguments& given, budget& work) {
  const bound_arguments a("tojson", given, {"ensure_ascii", "indent", "separators", "sort_keys"});
  json_style style;
  style.ascii = a.flag_or(0, false);
  style.indent = indent_of(a.get_or(1, {}), work);
  style.sort_keys = a.flag_or(3, false);
  if (style.indent) style.item_separator = ",";
  if (const value separators = a.get_or(2, {}); !separators.is_none()) {
    const list_object* pair = separators.list();
    if (pair == nullptr || pair->elements.size() != 2 || !pair->elements[0].is_text() ||
        !pair->elements[1].is_text()) {
      throw operation_error("argument 'separators' of tojson must be two strings");
    }
    style.item_separator = std::string(pair->elements[0].text());
    style.key_separator = std::string(pair->elements[1].text());
  }
  return make_text(to_json(input, style, work));
}

value safe(const value& input, const arguments& given, budget& /*work*/) {
  const bound_arguments none("safe", given, {});
  return input;
}

constexpr std::array<builtin_filter, 11> filters{{
    {"trim", trim},
    {"tojson", tojson},
    {"join", join},
    {"upper", case_filter<letter_case::upper>},
    {"lower", case_filter<letter_case::lower>},
    {"title", case_filter<letter_case::words>},
    {"capitalize", case_filter<letter_case::capitalize>},
    {"string", string},
    {"replace", replace_filter},
    {"indent", indent},
    {"safe", safe},
}};

}  // namespace

std::span<const builtin_filter> text_filters() {
  return filters;
}

}  // namespace octavo::model::jinja
