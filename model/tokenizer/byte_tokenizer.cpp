// Bytes as tokens: see byte_tokenizer.hpp.
#include "model/tokenizer/byte_tokenizer.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/utf8.hpp"

namespace octavo::model {

// Byte-level BPE with the alphabet as its vocabulary, and no merges.
tokenizer byte_tokenizer() {
  using nlohmann::ordered_json;
  ordered_json vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_code_point(text, byte_character(static_cast<unsigned char>(byte)));
    vocabulary[text] = byte;
  }
  const ordered_json byte_level{{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const ordered_json file{
      {"version", "1.0"},
      {"added_tokens", ordered_json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", ordered_json::array()}}}};
  return tokenizer::from_json(file.dump(), {});
}

}  // namespace octavo::model
