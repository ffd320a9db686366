// JSON documents as values of templates.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/chat/jinja/value.hpp"

namespace octavo::model::jinja {

/// The same content; texts are marked as `trusted` says. Throws input_error naming
/// `what` for text that is not UTF-8, whole numbers beyond 64 bits with sign, and
/// nesting deeper than `allowed`.
[[nodiscard]] value from_json(const nlohmann::ordered_json& document, const std::string& what,
                              bool trusted = false, const limits& allowed = {});

}  // namespace octavo::model::jinja
