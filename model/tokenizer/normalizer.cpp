// The steps of normalisation. Unicode's normal forms come from utf8proc.
#include "model/tokenizer/normalizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/error.hpp"

namespace octavo::model {
namespace {

struct c_free {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

int options_of(unicode_form form) {
  switch (form) {
    case unicode_form::nfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case unicode_form::nfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case unicode_form::nfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case unicode_form::nfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

/// Whether the form leaves the text as it is, by its lead bytes alone: composing
/// changes nothing below U+0300 (lead bytes up to 0xCB), and no form changes ASCII.
bool surely_normal(unicode_form form, std::string_view text) {
  const unsigned char lead_max = form == unicode_form::nfc ? 0xCB : 0x7F;
  return std::ranges::all_of(
      text, [&](char byte) { return static_cast<unsigned char>(byte) <= lead_max; });
}

std::string apply_step(unicode_form form, std::string text, bool) {
  if (surely_normal(form, text)) return text;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(options_of(form)));
  const std::unique_ptr<utf8proc_uint8_t, c_free> owner(mapped);
  if (length == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (length < 0) {
    throw input_error(std::string("text cannot be normalised: ") + utf8proc_errmsg(length));
  }
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length)};
}

std::string apply_step(const prepend_step& prepend, std::string text, bool at_start) {
  return at_start && !text.empty() ? prepend.text + text : text;
}

std::string apply_step(const replace_step& replace, std::string text, bool) {
  std::vector<text_range> found;
  replace.pattern.find_all(text, found);
  if (found.empty()) return text;
  std::string replaced;
  std::size_t at = 0;
  for (const text_range match : found) {
    replaced.append(text, at, match.begin - at);
    replaced += replace.content;
    at = match.end;
  }
  return replaced.append(text, at);
}

}  // namespace

std::string normalizer::apply(std::string_view text, bool at_start) const {
  std::string result(text);
  for (const step& next : steps_) {
    result = std::visit(
        [&](const auto& one) { return apply_step(one, std::move(result), at_start); }, next);
  }
  return result;
}

}  // namespace octavo::model
