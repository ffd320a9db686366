// See access.hpp.
#include "model/chat/jinja/access.hpp"

#include <algorithm>
#include <charconv>

#include "model/chat/jinja/characters.hpp"
#include "model/chat/jinja/methods.hpp"
#include "model/chat/jinja/text_functions.hpp"

namespace octavo::model::jinja {
namespace {

value loop_attribute(const loop_state& loop, std::string_view name) {
  const auto& items = loop.items->elements;
  const std::size_t at = loop.index0;
  const auto whole = [](std::size_t number) { return value(static_cast<std::int64_t>(number)); };
  if (name == "index") return whole(at + 1);
  if (name == "index0") return whole(at);
  if (name == "revindex") return whole(items.size() - at);
  if (name == "revindex0") return whole(items.size() - at - 1);
  if (name == "length") return whole(items.size());
  if (name == "first") return at == 0;
  if (name == "last") return at + 1 == items.size();
  if (name == "previtem")
    return at > 0 ? items[at - 1] : make_undefined("there is no previous item");
  if (name == "nextitem" && at + 1 < items.size()) return items[at + 1];
  return make_undefined("there is no 'loop." + std::string(name) + "'");
}

/// What a value holds under a name, apart from methods; nullptr where nothing.
const value* held(const value& of, std::string_view name) {
  if (const auto* dict = of.dict()) return dict->find(name);
  if (const auto* space = of.as<namespace_object*>()) {
    const auto found = (*space)->attributes.find(name);
    if (found != (*space)->attributes.end()) return &found->second;
  }
  return nullptr;
}

value method_or_undefined(const value& of, std::string_view name) {
  if (const builtin_method* method = find_method(of, name)) {
    return bound_method{std::make_shared<const value>(of), method};
  }
  if (const auto* loop = of.as<std::shared_ptr<const loop_state>>()) {
    return loop_attribute(**loop, name);
  }
  return make_undefined("a value of type " + std::string(type_name(of)) + " has no '" +
                        std::string(name) + "'");
}

/// The element of that number, counted from the end if negative.
value element_at(const value& of, std::int64_t number, budget& work) {
  const std::int64_t count = length_of(of);
  const std::int64_t place = number < 0 ? number + count : number;
  if (place < 0 || place >= count) {
    return make_undefined("there is no element " + std::to_string(number));
  }
  if (const auto* list = of.list()) return list->elements[static_cast<std::size_t>(place)];
  work.spend_text(of.text().size());
  const std::size_t begin = offset_of_code_point(of.text(), place);
  std::size_t end = begin;
  static_cast<void>(read_code_point(of.text(), end));
  return make_text(part_of(**of.as<text_value>(), begin, end));
}

/// The numbers that a slice of `count` elements takes.
std::vector<std::int64_t> places_of(const slice_bounds& bounds, std::int64_t count) {
  const std::int64_t step = bounds.step;
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? count : count - 1;
  const auto within = [&](std::optional<std::int64_t> bound, std::int64_t fallback) {
    if (!bound) return fallback;
    const std::int64_t place = *bound < 0 ? *bound + count : *bound;
    return std::clamp(place, lowest, highest);
  };
  const std::int64_t begin = within(bounds.start, step > 0 ? lowest : highest);
  const std::int64_t end = within(bounds.stop, step > 0 ? highest : lowest);
  // Steps beyond the length take one element, and must not overflow.
  const std::int64_t stride = std::clamp(step, -count - 1, count + 1);
  std::vector<std::int64_t> places;
  for (std::int64_t at = begin; step > 0 ? at < end : at > end; at += stride) places.push_back(at);
  return places;
}

}  // namespace

void refuse_undefined(const value& v) {
  if (const auto* undefined = v.as<undefined_value>()) throw operation_error(*undefined->what);
}

value attribute_of(const value& of, std::string_view name) {
  refuse_undefined(of);
  if (find_method(of, name) == nullptr) {
    if (const value* found = held(of, name)) return *found;
  }
  return method_or_undefined(of, name);
}

value item_of(const value& of, const value& index, budget& work) {
  refuse_undefined(of);
  if (const auto* dict = of.dict()) {
    if (!index.is_text()) work.spend(dict->extent.weight);
    if (const value* found = dict->find(index)) return *found;
  }
  if (index.is_text()) {
    if (const value* found = held(of, index.text())) return *found;
    return method_or_undefined(of, index.text());
  }
  const bool is_sequence = of.list() != nullptr || of.is_text();
  if (is_sequence && (index.is<std::int64_t>() || index.is<bool>())) {
    return element_at(of, as_integer(index, "an index"), work);
  }
  return make_undefined("a value of type " + std::string(type_name(of)) + " has no such element");
}

value slice_of(const value& of, const slice_bounds& bounds, budget& work) {
  refuse_undefined(of);
  const auto* list = of.list();
  if (list == nullptr && !of.is_text()) {
    throw operation_error("a value of type " + std::string(type_name(of)) + " cannot be sliced");
  }
  if (bounds.step == 0) throw operation_error("the step of a slice is 0");
  if (list != nullptr) {
    work.spend_elements(list->elements.size());
    value_list taken;
    for (const std::int64_t place : places_of(bounds, std::ssize(list->elements))) {
      taken.push_back(list->elements[static_cast<std::size_t>(place)]);
    }
    return make_list(std::move(taken), work.allowed(), list->is_tuple);
  }
  const marked_text& text = **of.as<text_value>();
  work.spend(static_cast<std::int64_t>(text.text().size()));
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < text.text().size();) {
    begins.push_back(at);
    static_cast<void>(read_code_point(text.text(), at));
  }
  begins.push_back(text.text().size());
  const auto places = places_of(bounds, std::ssize(begins) - 1);
  if (bounds.step == 1) {
    if (places.empty()) return make_text("", true);
    const auto first = static_cast<std::size_t>(places.front());
    return make_text(part_of(text, begins[first], begins[first + places.size()]));
  }
  marked_text taken;
  for (const std::int64_t place : places) {
    const auto i = static_cast<std::size_t>(place);
    append(taken, part_of(text, begins[i], begins[i + 1]));
  }
  return make_text(std::move(taken));
}

value follow(const value& of, std::string_view path, budget& work, const value* fallback) {
  value at = of;
  for (;;) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, dot);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = error == std::errc{} && end == part.data() + part.size();
    at = item_of(at, is_number ? value(number) : make_text(part, true), work);
    if (fallback != nullptr && at.is_undefined()) at = *fallback;
    if (dot == path.size()) return at;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace octavo::model::jinja
