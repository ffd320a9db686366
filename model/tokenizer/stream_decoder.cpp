// Incremental decoding.
#include "model/tokenizer/stream_decoder.hpp"

#include "model/tokenizer/pipeline.hpp"

namespace octavo::model {

std::string stream_decoder::push(token_id token) {
  std::string bytes;
  append_piece(words_, token, options_, at_start_, bytes);
  std::string text;
  assembler_.push(bytes, text);
  return text;
}

std::string stream_decoder::flush() {
  std::string text;
  assembler_.flush(text);
  return text;
}

}  // namespace octavo::model
