// a.name, a[index] and a[start:stop:step].
#pragma once

#include <optional>
#include <string_view>

#include "model/chat/jinja/value.hpp"

namespace octavo::model::jinja {

/// a.name: a method, or else what `a` holds under that name, or an undefined value.
/// Throws operation_error for attributes of undefined values.
[[nodiscard]] value attribute_of(const value& of, std::string_view name);

/// a[index]: an element, or else as a.index. The same errors.
[[nodiscard]] value item_of(const value& of, const value& index, budget& work);

struct slice_bounds {
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> stop;
  std::int64_t step = 1;
};

/// Python's slices of lists, tuples and texts. Throws operation_error for others, and
/// where the step is 0.
[[nodiscard]] value slice_of(const value& of, const slice_bounds& bounds, budget& work);

/// The value at the end of a path such as "function.name" or "0.id". A fallback takes
/// the place of what is undefined on the way.
[[nodiscard]] value follow(const value& of, std::string_view path, budget& work,
                           const value* fallback = nullptr);

/// Throws operation_error, which says what is undefined, where a value is.
void refuse_undefined(const value& v);

}  // namespace octavo::model::jinja
