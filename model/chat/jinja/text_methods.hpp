// The methods of texts.
#pragma once

#include <span>

#include "model/chat/jinja/methods.hpp"

namespace octavo::model::jinja {

[[nodiscard]] std::span<const builtin_method> text_methods();

}  // namespace octavo::model::jinja
