// See format.hpp.
#include "model/chat/jinja/format.hpp"

#include <algorithm>

#include "model/chat/jinja/characters.hpp"
#include "model/chat/jinja/print.hpp"
#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {
namespace {

/// Appends the text of a value, within the bounds.
void append_value(marked_text& to, const value& v, budget& work) {
  const marked_text text = to_text(v, work);
  work.spend_text(text.text().size());
  work.check_text(to.text().size() + text.text().size());
  append(to, text);
}

/// The argument that a field {}, {0} or {name} stands for.
const value& argument_of(std::string_view field, std::size_t& next, const arguments& given) {
  const bool is_number = std::ranges::all_of(field, is_ascii_digit);
  if (is_number && field.size() < 5) {
    const std::size_t number =
        field.empty() ? next++ : static_cast<std::size_t>(std::stoi(std::string(field)));
    if (number < given.positional.size()) return given.positional[number];
  }
  const auto named = std::ranges::find(
      given.named, field, [](const auto& argument) { return std::string_view(argument.first); });
  if (named != given.named.end()) return named->second;
  throw operation_error("format(): there is no argument for {" + std::string(field) +
                        "}, or its form is not supported");
}

}  // namespace

value format_method(const value& self, const arguments& given, budget& work) {
  const marked_text& form = **self.as<text_value>();
  const std::string_view all = form.text();
  work.spend_text(all.size());
  marked_text result;
  std::size_t next = 0;
  std::size_t at = 0;
  while (at < all.size()) {
    const std::size_t brace = std::min(all.find_first_of("{}", at), all.size());
    append(result, part_of(form, at, brace));
    if (brace == all.size()) break;
    at = brace + 1;
    if (at < all.size() && all[at] == all[brace]) {
      append(result, part_of(form, brace, at));
      ++at;
      continue;
    }
    const std::size_t end = all[brace] == '{' ? all.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) throw operation_error("format(): a brace has no partner");
    append_value(result, argument_of(all.substr(at, end - at), next, given), work);
    at = end + 1;
  }
  return make_text(std::move(result));
}

value percent_format(const marked_text& form, const value& content, budget& work) {
  const std::string_view all = form.text();
  const list_object* list = content.list();
  const bool several = list != nullptr && list->is_tuple;
  const std::size_t count = several ? list->elements.size() : 1;
  marked_text result;
  std::size_t used = 0;
  std::size_t at = 0;
  work.spend_text(all.size());
  while (at < all.size()) {
    const std::size_t mark = std::min(all.find('%', at), all.size());
    append(result, part_of(form, at, mark));
    if (mark == all.size()) break;
    const char kind = mark + 1 < all.size() ? all[mark + 1] : ' ';
    if (kind == '%') {
      append(result, part_of(form, mark, mark + 1));
    } else if (kind == 's' || kind == 'd') {
      if (used == count) throw operation_error("%: there are too few values");
      const value& v = several ? list->elements[used] : content;
      ++used;
      append_value(result, kind == 'd' ? value(as_integer(v, "the value of %d")) : v, work);
    } else {
      throw operation_error("%: only %s, %d and %% are supported");
    }
    at = mark + 2;
  }
  const bool is_mapping = content.dict() != nullptr || (list != nullptr && !several);
  if (used < count && !is_mapping) throw operation_error("%: there are too many values");
  return make_text(std::move(result));
}

}  // namespace octavo::model::jinja
