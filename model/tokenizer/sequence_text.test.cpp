// Stop strings and held text of one sequence, with a vocabulary made by hand.
#include "model/tokenizer/sequence_text.hpp"

#include <array>

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;

namespace {

using strings = std::vector<std::string>;

/// The 256 bytes, then `pieces` from token 256 on, then the control token "</s>".
tokenizer words_of(const strings& pieces) {
  strings texts;
  const std::string digits = "0123456789ABCDEF";
  for (const char high : digits) {
    for (const char low : digits) texts.push_back(std::string("<0x") + high + low + ">");
  }
  texts.insert(texts.end(), pieces.begin(), pieces.end());
  texts.push_back("</s>");
  gguf_vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = {texts.begin(), texts.end()};
  vocabulary.scores.assign(texts.size(), 0.0F);
  vocabulary.token_types.assign(texts.size(), 6);
  for (std::size_t i = 256; i < texts.size(); ++i) vocabulary.token_types[i] = 1;
  vocabulary.token_types.back() = 3;
  return tokenizer::from_gguf(vocabulary);
}

struct run_result {
  strings parts;  ///< of each token pushed, and of finish() where nothing stopped it
  bool stopped = false;
  friend bool operator==(const run_result&, const run_result&) = default;
};

run_result run(const sampling_parameters& how, const strings& pieces,
               std::vector<token_id> tokens = {}) {
  const tokenizer words = words_of(pieces);
  if (tokens.empty()) {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      tokens.push_back(static_cast<token_id>(256 + i));
  }
  sequence_text text{words, how};
  run_result result;
  for (const token_id token : tokens) {
    std::string& part = result.parts.emplace_back();
    if (text.push(token, part) == finish_kind::stop_string) {
      result.stopped = true;
      return result;
    }
  }
  text.finish(result.parts.emplace_back());
  return result;
}

sampling_parameters stopping_at(const strings& stops) {
  sampling_parameters how;
  how.stop = stops;
  return how;
}

std::vector<token_id> bytes_of(std::string_view text) {
  std::vector<token_id> tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

}  // namespace

TEST_CASE("without stop strings every token's text comes out at once") {
  CHECK(run({}, {"ab", "c", "\n"}) == run_result{{"ab", "c", "\n", ""}, false});
}

TEST_CASE("a stop string spread over tokens ends the text, and none of it leaks") {
  const auto how = stopping_at({"\n\nUser"});
  CHECK(run(how, {"Hi", "\n", "\nUs", "er:"}) == run_result{{"Hi", "", "", ""}, true});
  CHECK(run(how, {"Hi\n", "\nUser"}) == run_result{{"Hi", ""}, true});
}

TEST_CASE("a stop string within one token ends the text there") {
  CHECK(run(stopping_at({"\n\nUser"}), {"a\n\nUserb"}) == run_result{{"a"}, true});
}

TEST_CASE("what looked like a stop string and is none comes out complete and in order") {
  const auto how = stopping_at({"\n\nUser"});
  CHECK(run(how, {"a\n", "\nUs", "ing", "!"}) ==
        run_result{{"a", "", "\n\nUsing", "!", ""}, false});
  // The held start gives way to a later one inside it.
  CHECK(run(how, {"\n", "User"}, {256, 256, 256, 257}) == run_result{{"", "", "\n", ""}, true});
  CHECK(run(stopping_at({"aab"}), {"aa", "a", "b."}) == run_result{{"", "a", ""}, true});
}

TEST_CASE("a held start comes out where the sequence ends otherwise") {
  CHECK(run(stopping_at({"stop"}), {"x st"}) == run_result{{"x ", "st"}, false});
}

TEST_CASE("a long stop string that never begins holds nothing back") {
  const auto how = stopping_at({"0123456789012345678901234567890123456789"});
  CHECK(run(how, {"abc", "def", "ghi"}) == run_result{{"abc", "def", "ghi", ""}, false});
  CHECK(run(how, {"abc0", "1", "x"}) == run_result{{"abc", "", "01x", ""}, false});
}

TEST_CASE("of several stop strings the first in the text counts") {
  CHECK(run(stopping_at({"END", "##"}), {"a ## END"}) == run_result{{"a "}, true});
  CHECK(run(stopping_at({"##", "END"}), {"a ## END"}) == run_result{{"a "}, true});
  CHECK(run(stopping_at({"abcd", "bc"}), {"ab", "cx"}) == run_result{{"", "a"}, true});
  CHECK(run(stopping_at({"abcd", "x"}), {"abc", "e", "x"}) == run_result{{"", "abce", ""}, true});
}

TEST_CASE("the stop string is part of the text where the client wants it") {
  auto how = stopping_at({"\n\nUser"});
  how.include_stop_str_in_output = true;
  CHECK(run(how, {"a\n", "\nUserb"}) == run_result{{"a", "\n\nUser"}, true});
}

TEST_CASE("an empty stop string stops nothing and holds nothing") {
  CHECK(run(stopping_at({""}), {"ab", "c"}) == run_result{{"ab", "c", ""}, false});
}

TEST_CASE("a stop string does not end the text within the first min_tokens tokens") {
  auto how = stopping_at({"#!"});
  how.min_tokens = 2;
  CHECK(run(how, {"a#!", "b#!", "c", "#!"}) == run_result{{"a#!", "b#!", "c", ""}, true});
  // It may begin within them and end after.
  CHECK(run(how, {"a", "b#", "!c"}) == run_result{{"a", "b", ""}, true});
}

TEST_CASE("a character spread over tokens is held until it is whole") {
  const std::string family = "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9";  // man, ZWJ, woman
  const auto out = run({}, {}, bytes_of(family));
  const strings expected{"", "", "", family.substr(0, 4), "", "", family.substr(4, 3),
                         "", "", "", family.substr(7, 4), ""};
  CHECK(out == run_result{expected, false});
}

TEST_CASE("a stop string of several bytes a character is found where tokens are bytes") {
  const std::string end = "\xE7\xBB\x93\xE6\x9D\x9F";
  const auto out = run(stopping_at({end}), {}, bytes_of("a" + end));
  CHECK(out.stopped);
  CHECK(out.parts == strings{"a", "", "", "", "", "", ""});
}

TEST_CASE("a character that the sequence leaves unfinished is replaced at its end") {
  CHECK(run({}, {}, bytes_of("a\xE2\x82")) == run_result{{"a", "", "", "\xEF\xBF\xBD"}, false});
}

TEST_CASE("control tokens show in the text only where the client wants them") {
  auto how = stopping_at({"</s>"});
  CHECK(run(how, {"a"}, {256, 257}) == run_result{{"a", "", ""}, false});
  how.skip_special_tokens = false;
  CHECK(run(how, {"a"}, {256, 257}) == run_result{{"a", ""}, true});
}

TEST_CASE("end and stop tokens have no text of their own, and let out what was held") {
  auto how = stopping_at({"bcd"});
  how.stop_token_ids = {257};
  const tokenizer words = words_of({"ab", "S"});  // 258: </s>
  const std::vector<token_id> ends{258};
  for (const auto& [last, kind] :
       {std::pair{257, finish_kind::stop_token}, std::pair{258, finish_kind::eos}}) {
    sequence_text text{words, how, ends};
    std::string out;
    CHECK(text.take(256, false, out) == finish_kind::none);
    CHECK(out == "a");
    CHECK(text.take(last, false, out) == kind);
    CHECK(out == "ab");
  }
}

TEST_CASE("the last token lets out what was held, and ends nothing by itself") {
  const tokenizer words = words_of({"ab", "cd"});
  sequence_text text{words, stopping_at({"bcx"})};
  std::string out;
  CHECK(text.take(256, true, out) == finish_kind::none);
  CHECK(out == "ab");
}

TEST_CASE("an end token is text where the end is ignored, and no stop token counts too early") {
  sampling_parameters how;
  how.ignore_eos = true;
  how.skip_special_tokens = false;
  how.stop_token_ids = {256};
  how.min_tokens = 2;
  const tokenizer words = words_of({"ab"});
  const std::vector<token_id> ends{257};
  sequence_text text{words, how, ends};
  std::string out;
  CHECK(text.take(256, false, out) == finish_kind::none);
  CHECK(text.take(257, false, out) == finish_kind::none);
  CHECK(out == "ab</s>");
  CHECK(text.take(256, false, out) == finish_kind::stop_token);
}

TEST_CASE("which stop string was found can be asked") {
  const tokenizer words = words_of({"a ", "##"});
  sequence_text text{words, stopping_at({"END", "##"})};
  std::string out;
  text.push(256, out);
  CHECK(text.found_stop().empty());
  text.push(257, out);
  CHECK(text.found_stop() == "##");
}
