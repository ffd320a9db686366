// UTF-8 by the table of well-formed byte sequences (Unicode 15, table 3-7).
#include "model/tokenizer/utf8.hpp"

#include <utf8proc.h>

namespace octavo::model {
namespace {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// The length that a lead byte announces; 0 where it cannot lead.
std::size_t announced_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

/// Whether `byte` may follow `lead`; this is where overlong forms, surrogates and
/// values above U+10FFFF are kept out.
bool may_follow_lead(unsigned char lead, unsigned char byte) {
  const unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return byte >= least && byte <= most;
}

}  // namespace

utf8_step next_utf8(std::string_view text) {
  const unsigned char lead = byte_at(text, 0);
  const std::size_t length = announced_length(lead);
  if (length == 0) return {1, utf8_state::invalid};
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, utf8_state::incomplete};
    const unsigned char byte = byte_at(text, i);
    const bool follows = i == 1 ? may_follow_lead(lead, byte) : (byte & 0xC0) == 0x80;
    if (!follows) return {i, utf8_state::invalid};
  }
  return {length, utf8_state::valid};
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (byte_at(text, at) < 0x80) {
      ++at;
      continue;
    }
    const utf8_step step = next_utf8(text.substr(at));
    if (step.state != utf8_state::valid) return at;
    at += step.length;
  }
  return std::nullopt;
}

char32_t read_code_point(std::string_view text, std::size_t& at) {
  const unsigned char lead = byte_at(text, at++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t value = lead & (0x3FU >> more);
  for (int i = 0; i < more; ++i) value = (value << 6) | (byte_at(text, at++) & 0x3FU);
  return value;
}

void append_code_point(std::string& text, char32_t code_point) {
  const auto put = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool is_white_space(char32_t code_point) {
  if (code_point < 0x80) return code_point == ' ' || (code_point >= 9 && code_point <= 13);
  if (code_point == 0x85) return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

bool is_word_character(char32_t code_point) {
  if (code_point == 0x200C || code_point == 0x200D) return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

void utf8_assembler::push(std::string_view bytes, std::string& text) {
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_);
    joined += bytes;
    bytes = joined;
    pending_.clear();
  }
  while (!bytes.empty()) {
    const utf8_step step = next_utf8(bytes);
    if (step.state == utf8_state::incomplete) {
      pending_ = std::string(bytes);
      return;
    }
    text += step.state == utf8_state::valid ? bytes.substr(0, step.length) : replacement_character;
    bytes.remove_prefix(step.length);
  }
}

void utf8_assembler::flush(std::string& text) {
  if (pending_.empty()) return;
  text += replacement_character;
  pending_.clear();
}

}  // namespace octavo::model
