// What `octavo model inspect` shows: a model on disk, summed up for people or
// as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/container/checkpoint.hpp"

namespace octavo::model {

[[nodiscard]] nlohmann::ordered_json inspection_json(const checkpoint& model);

/// A table of fields, then one of tensors by type. Ends with a newline.
[[nodiscard]] std::string inspection_table(const checkpoint& model);

}  // namespace octavo::model
