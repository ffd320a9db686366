// The first field in which two decoded records of a decision log differ.
#pragma once

#include <optional>
#include <string>

#include "core/decision_log.hpp"

namespace octavo::sim {

/// A field by name ("ran[2].tokens") with both values as text. Where one list is
/// shorter, its value is "nothing".
struct field_difference {
  std::string field;
  std::string logged;
  std::string replayed;
};

/// Compares in the order in which the log stores the fields. Nothing where the
/// two are equal.
[[nodiscard]] std::optional<field_difference> first_difference(const logged_step& logged,
                                                               const logged_step& replayed);

}  // namespace octavo::sim
