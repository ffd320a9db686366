// Where each token begins in a text whose tokens may be parts of code points.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/tokenizer/utf8.hpp"

namespace octavo::api {

/// Counts code points, as Python's str does. A token that continues a code point begins
/// where that code point does.
class text_offsets {
 public:
  /// The offset of a token with these bytes, which come next in the text.
  [[nodiscard]] std::int64_t next(std::string_view bytes);

 private:
  model::utf8_assembler text_;
  std::int64_t code_points_ = 0;
};

}  // namespace octavo::api
