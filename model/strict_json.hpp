// JSON from files that nobody vouches for: bounded nesting, no key twice in one
// object, valid UTF-8, nothing behind the document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace octavo::model {

/// Parses `text`. `where` names it. Throws input_error saying what is wrong and
/// at which byte.
[[nodiscard]] nlohmann::json parse_strict_json(std::string_view text, const std::string& where,
                                               int depth_max);

/// Reads and parses a file of at most `bytes_max` bytes, nested up to 64 deep.
[[nodiscard]] nlohmann::json load_json_file(const std::string& path, std::size_t bytes_max);

}  // namespace octavo::model
