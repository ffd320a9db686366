// See methods.hpp. Methods of texts are in text_methods.cpp.
#include "model/chat/jinja/methods.hpp"

#include <algorithm>
#include <array>

#include "model/chat/jinja/text_methods.hpp"

namespace octavo::model::jinja {
namespace {

value refused(const value& self, const arguments& /*given*/, budget& /*work*/) {
  throw operation_error("templates may not change a value of type " + std::string(type_name(self)));
}

template <class Part>
value list_of_entries(const value& self, budget& work, Part&& part) {
  value_list parts;
  work.spend_elements(self.dict()->entries.size());
  for (const auto& entry : self.dict()->entries) parts.push_back(part(entry));
  return make_list(std::move(parts), work.allowed());
}

value dict_items(const value& self, const arguments& given, budget& work) {
  const bound_arguments none("items()", given, {});
  return list_of_entries(self, work, [&](const auto& entry) {
    return make_list({entry.first, entry.second}, work.allowed(), true);
  });
}

value dict_keys(const value& self, const arguments& given, budget& work) {
  const bound_arguments none("keys()", given, {});
  return list_of_entries(self, work, [](const auto& entry) { return entry.first; });
}

value dict_values(const value& self, const arguments& given, budget& work) {
  const bound_arguments none("values()", given, {});
  return list_of_entries(self, work, [](const auto& entry) { return entry.second; });
}

value dict_get(const value& self, const arguments& given, budget& /*work*/) {
  const bound_arguments a("get()", given, {"key", "default"});
  const value* found = self.dict()->find(a.at(0));
  return found == nullptr ? a.get_or(1, {}) : *found;
}

value copy(const value& self, const arguments& given, budget& /*work*/) {
  const bound_arguments none("copy()", given, {});
  return self;
}

value list_index(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("index()", given, {"value"});
  work.spend(extent_of(self).weight);
  const auto& elements = self.list()->elements;
  const auto found =
      std::ranges::find_if(elements, [&](const value& v) { return equals(v, a.at(0)); });
  if (found == elements.end()) throw operation_error("index(): the list has no such element");
  return static_cast<std::int64_t>(found - elements.begin());
}

value list_count(const value& self, const arguments& given, budget& work) {
  const bound_arguments a("count()", given, {"value"});
  work.spend(extent_of(self).weight);
  return static_cast<std::int64_t>(std::ranges::count_if(
      self.list()->elements, [&](const value& v) { return equals(v, a.at(0)); }));
}

constexpr std::array<builtin_method, 10> dict_methods{{
    {"items", dict_items},
    {"keys", dict_keys},
    {"values", dict_values},
    {"get", dict_get},
    {"copy", copy},
    {"clear", refused},
    {"pop", refused},
    {"popitem", refused},
    {"setdefault", refused},
    {"update", refused},
}};

constexpr std::array<builtin_method, 11> list_methods{{
    {"index", list_index},
    {"count", list_count},
    {"copy", copy},
    {"append", refused},
    {"clear", refused},
    {"extend", refused},
    {"insert", refused},
    {"pop", refused},
    {"remove", refused},
    {"reverse", refused},
    {"sort", refused},
}};

const builtin_method* find_in(std::span<const builtin_method> methods, std::string_view name) {
  const auto found = std::ranges::find(methods, name, &builtin_method::name);
  return found == methods.end() ? nullptr : &*found;
}

}  // namespace

const builtin_method* find_method(const value& self, std::string_view name) {
  if (self.is_text()) return find_in(text_methods(), name);
  if (self.dict() != nullptr) return find_in(dict_methods, name);
  const list_object* list = self.list();
  if (list == nullptr) return nullptr;
  return find_in(list->is_tuple ? std::span(list_methods).first(2) : std::span(list_methods), name);
}

}  // namespace octavo::model::jinja
