// Both directions of the byte-level alphabet.
#include "model/tokenizer/byte_alphabet.hpp"

#include <array>

#include "model/tokenizer/utf8.hpp"

namespace octavo::model {
namespace {

constexpr char32_t first_substitute = 0x100;
constexpr std::size_t alphabet_end = 0x100 + 68;

struct alphabet {
  std::array<char32_t, 256> character_of{};
  std::array<int, alphabet_end> byte_of{};

  constexpr alphabet() {
    byte_of.fill(-1);
    char32_t substitute = first_substitute;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
                             (byte >= 174 && byte <= 255);
      const char32_t character = printable ? static_cast<char32_t>(byte) : substitute++;
      character_of[byte] = character;
      byte_of[character] = byte;
    }
  }
};

constexpr alphabet letters;

}  // namespace

char32_t byte_character(unsigned char byte) {
  return letters.character_of[byte];
}

std::optional<std::string> spelled_bytes(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (std::size_t at = 0; at < token.size();) {
    const char32_t character = read_code_point(token, at);
    if (character >= alphabet_end || letters.byte_of[character] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(letters.byte_of[character]));
  }
  return bytes;
}

}  // namespace octavo::model
