// Reads a decision log's header back: the configuration that to_json wrote.
#pragma once

#include <string_view>

#include "core/config.hpp"

namespace octavo::sim {

/// The inverse of to_json(engine_config). Strict, because a replay under a
/// slightly other configuration proves nothing: a missing, unknown, repeated or
/// wrongly typed field is an input_error that names it, and so is a value that
/// validate() refuses.
[[nodiscard]] engine_config parse_header(std::string_view json);

}  // namespace octavo::sim
