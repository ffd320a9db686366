// Normalisation against the examples of the Unicode standard.
#include "model/tokenizer/normalizer.hpp"

#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

std::string normal(unicode_form form, const std::string& text) {
  normalizer steps;
  steps.add(form);
  return steps.apply(text, true);
}

}  // namespace

// From the examples of Unicode Standard Annex 15.
TEST_CASE("the normal forms are Unicode's") {
  const std::string angstrom = "\xE2\x84\xAB";   // U+212B
  const std::string a_ring = "\xC3\x85";         // U+00C5
  const std::string a_and_ring = "A\xCC\x8A";    // U+0041 U+030A
  const std::string ligature = "\xEF\xAC\x81";   // U+FB01
  const std::string dots = "q\xCC\x87\xCC\xA3";  // dot above, then below: reordered
  CHECK(normal(unicode_form::nfc, angstrom) == a_ring);
  CHECK(normal(unicode_form::nfc, a_and_ring) == a_ring);
  CHECK(normal(unicode_form::nfd, a_ring) == a_and_ring);
  CHECK(normal(unicode_form::nfc, ligature) == ligature);
  CHECK(normal(unicode_form::nfkc, ligature) == "fi");
  CHECK(normal(unicode_form::nfkd, a_ring) == a_and_ring);
  CHECK(normal(unicode_form::nfc, dots) == "q\xCC\xA3\xCC\x87");
  CHECK(normal(unicode_form::nfc, "\xE1\x84\x80\xE1\x85\xA1") == "\xEA\xB0\x80");  // Hangul
  CHECK(normal(unicode_form::nfc, std::string("a\0b", 3)) == std::string("a\0b", 3));
}

TEST_CASE("a form that changes nothing leaves the text alone") {
  for (const std::string text : {"", "plain", "caf\xC3\xA9 \xC9\x90"}) {
    CHECK(normal(unicode_form::nfc, text) == text);
  }
}

TEST_CASE("steps follow each other, and a prefix stands only at the start") {
  normalizer steps;
  steps.add(prepend_step{"_"});
  steps.add(replace_step{text_pattern::literal(" ", "test"), "_"});
  CHECK(steps.apply("a b", true) == "_a_b");
  CHECK(steps.apply("a b", false) == "a_b");
  CHECK(steps.apply("", true).empty());
}

TEST_CASE("a replacement can be a pattern") {
  normalizer steps;
  steps.add(replace_step{text_pattern::regex(" {2,}", "test"), "."});
  CHECK(steps.apply("a b  c   d", true) == "a b.c.d");
}

}  // namespace octavo::model
