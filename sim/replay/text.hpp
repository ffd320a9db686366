// Names of the log's small enumerations, for people and other tools.
#pragma once

#include <string_view>

#include "core/decision_record.hpp"
#include "core/step.hpp"

namespace octavo::sim {

[[nodiscard]] std::string_view name_of(input_kind kind);
[[nodiscard]] std::string_view name_of(finish_kind kind);

}  // namespace octavo::sim
