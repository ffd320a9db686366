// The families of filters, each in a file of its own.
#pragma once

#include <span>

#include "model/chat/jinja/arguments.hpp"

namespace octavo::model::jinja {

struct builtin_filter {
  std::string_view name;
  value (*run)(const value& input, const arguments& given, budget& work);
};

[[nodiscard]] std::span<const builtin_filter> text_filters();
[[nodiscard]] std::span<const builtin_filter> number_filters();
[[nodiscard]] std::span<const builtin_filter> sequence_filters();
[[nodiscard]] std::span<const builtin_filter> selecting_filters();

}  // namespace octavo::model::jinja
