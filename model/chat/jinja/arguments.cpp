// See arguments.hpp.
#include "model/chat/jinja/arguments.hpp"

#include <algorithm>

namespace octavo::model::jinja {

bound_arguments::bound_arguments(std::string_view callee, const arguments& given,
                                 std::initializer_list<std::string_view> parameters)
    : callee_(callee), parameters_(parameters), places_(parameters.size()) {
  if (given.positional.size() > places_.size()) {
    throw operation_error(callee_ + " takes at most " + std::to_string(places_.size()) +
                          " arguments, not " + std::to_string(given.positional.size()));
  }
  std::ranges::copy(given.positional, places_.begin());
  for (const auto& [name, content] : given.named) {
    const auto found = std::ranges::find(parameters_, std::string_view(name));
    if (found == parameters_.end()) {
      throw operation_error(callee_ + " takes no argument named '" + name + "'");
    }
    auto& place = places_[static_cast<std::size_t>(found - parameters_.begin())];
    if (place) throw operation_error(callee_ + " is given the argument '" + name + "' twice");
    place = content;
  }
}

std::string bound_arguments::name_of(std::size_t i) const {
  return "argument '" + std::string(parameters_[i]) + "' of " + callee_;
}

const value& bound_arguments::at(std::size_t i) const {
  if (!places_[i]) throw operation_error(name_of(i) + " is missing");
  return *places_[i];
}

value bound_arguments::get_or(std::size_t i, value fallback) const {
  return places_[i] ? *places_[i] : std::move(fallback);
}

bool bound_arguments::flag_or(std::size_t i, bool fallback) const {
  return places_[i] ? is_true(*places_[i]) : fallback;
}

std::int64_t bound_arguments::integer_or(std::size_t i, std::int64_t fallback) const {
  return places_[i] ? as_integer(*places_[i], name_of(i)) : fallback;
}

const marked_text& bound_arguments::text(std::size_t i) const {
  const auto* text = at(i).as<text_value>();
  if (text == nullptr) {
    throw operation_error(name_of(i) + " must be a string, not a value of type " +
                          std::string(type_name(at(i))));
  }
  return **text;
}

std::optional<std::string> bound_arguments::text_if_any(std::size_t i) const {
  if (!places_[i] || places_[i]->is_none()) return std::nullopt;
  return text(i).text();
}

}  // namespace octavo::model::jinja
