// A tokenizer for those who have no model: every byte of a text is a token of its own.
#pragma once

#include "model/tokenizer/tokenizer.hpp"

namespace octavo::model {

/// Token b stands for byte b, 0 … 255. There are no control tokens.
[[nodiscard]] tokenizer byte_tokenizer();

}  // namespace octavo::model
