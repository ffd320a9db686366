// The alphabet of byte-level BPE: each byte is written as one printable character,
// so that vocabularies can be stored as text (introduced with GPT-2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octavo::model {

/// The character that stands for `byte`: the printable ones of Latin-1 for
/// themselves, the other 68 in increasing order as U+0100, U+0101, ...
[[nodiscard]] char32_t byte_character(unsigned char byte);

/// The bytes that `token` spells; nothing where it holds a character outside the
/// alphabet (such a token is literal text).
[[nodiscard]] std::optional<std::string> spelled_bytes(std::string_view token);

}  // namespace octavo::model
