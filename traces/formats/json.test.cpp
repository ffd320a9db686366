// The JSON forms of others: Mooncake, Bailian and ShareGPT.
#include "traces/formats/json.hpp"

#include <vector>

#include "tests/support/catch.hpp"
#include "traces/reader.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using namespace octavo::traces;
using Catch::Matchers::ContainsSubstring;

namespace {

trace read(const std::string& text) {
  return read_trace(temp_file(text).path());
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const input_error& error) {
    return error.what();
  }
  return "read without an error";
}

std::string mooncake(const std::string& tokens, const std::string& more) {
  return "{\"input_length\":" + tokens + ",\"output_length\":2" + more + "}\n";
}

std::string message(const std::string& from, const std::string& value) {
  return "{\"from\":\"" + from + "\",\"value\":\"" + value + "\"}";
}

}  // namespace

TEST_CASE("Mooncake's milliseconds, lengths and ids are taken over") {
  const trace t = read(mooncake("513", ",\"timestamp\":27.5,\"hash_ids\":[4,9]"));
  CHECK(t.requests[0].arrival == micros{27'500});
  CHECK(t.prefix_block == token_count{512});
  CHECK(t.prefix_ids == std::vector<std::uint64_t>{4, 9});
  CHECK(t.notes.empty());
}

TEST_CASE("the block size is found when 512 does not fit, and refused when none does") {
  const trace t = read(mooncake("64", ",\"timestamp\":0,\"hash_ids\":[1]") +
                       mooncake("65", ",\"timestamp\":0,\"hash_ids\":[1,2]"));
  CHECK(t.prefix_block == token_count{64});
  CHECK_THAT(error_of(mooncake("64", ",\"timestamp\":0,\"hash_ids\":[1]") +
                      mooncake("64", ",\"timestamp\":0,\"hash_ids\":[1,2,3]")),
             ContainsSubstring("line 2: has 3 hash_ids for 64 tokens: at 512"));
  const trace both = read(mooncake("600", ",\"timestamp\":0,\"hash_ids\":[1]"));
  CHECK(both.prefix_block == token_count{1024});
}

TEST_CASE("a Mooncake session's rows wait for the row before them") {
  const trace t = read(mooncake("8", ",\"session_id\":\"x\",\"timestamp\":1000") +
                       mooncake("8", ",\"session_id\":7,\"timestamp\":1500") +
                       mooncake("8", ",\"session_id\":\"x\",\"delay\":2000") +
                       mooncake("8", ",\"session_id\":\"x\",\"delay_ms\":0.5") +
                       mooncake("8", ",\"session_id\":7,\"timestamp\":3000"));
  REQUIRE(t.requests.size() == 5);
  CHECK(t.requests[0].after == none);
  CHECK(t.requests[2].after == 0);
  CHECK(t.requests[2].delay == micros{2'000'000});
  CHECK(t.requests[3].after == 2);
  CHECK(t.requests[3].delay == micros{500});
  CHECK(t.requests[4].after == none);  // it has a time of its own
  CHECK(t.requests[4].arrival == micros{3'000'000});
  CHECK(t.names.at(t.requests[3].session) == "x");
  CHECK(t.names.at(t.requests[4].session) == "7");
}

TEST_CASE("bad Mooncake rows are refused") {
  CHECK_THAT(error_of(mooncake("0", ",\"timestamp\":0")), ContainsSubstring("found 0"));
  CHECK_THAT(error_of(mooncake("5", "")), ContainsSubstring("field \"timestamp\": found nothing"));
  CHECK_THAT(error_of(mooncake("5", ",\"session_id\":1,\"delay\":5")),
             ContainsSubstring("no earlier row of its session"));
  CHECK_THAT(
      error_of(mooncake("5", ",\"timestamp\":0,\"session_id\":1,\"delay\":0,\"delay_ms\":0")),
      ContainsSubstring("both"));
  CHECK_THAT(error_of(mooncake("5", ",\"timestamp\":0") + "{\"timestamp\":\n"),
             ContainsSubstring("line 2: is not valid JSON"));
  CHECK_THAT(error_of(mooncake("5", ",\"timestamp\":0,\"session_id\":1.5")),
             ContainsSubstring("field \"session_id\": found 1.5"));
}

TEST_CASE("Bailian's chats become sessions by their first turn") {
  const auto row = [](const std::string& chat, const std::string& parent, const std::string& at) {
    return "{\"chat_id\":" + chat + ",\"parent_chat_id\":" + parent + ",\"timestamp\":" + at +
           ",\"input_length\":20,\"output_length\":3,\"type\":\"text\",\"turn\":1,"
           "\"hash_ids\":[1,2]}\n";
  };
  const trace t = read(row("10", "-1", "0.5") + row("11", "-1", "1") + row("12", "10", "2") +
                       row("13", "12", "3") + row("14", "99", "4"));
  REQUIRE(t.requests.size() == 5);
  CHECK(t.format == "bailian-jsonl");
  CHECK(t.prefix_block == token_count{16});
  CHECK(t.requests[0].arrival == micros{500'000});
  CHECK(t.requests[3].session == t.requests[0].session);
  CHECK(t.requests[1].session != t.requests[0].session);
  CHECK(t.requests[3].after == none);
  CHECK(t.ids[4] == "14");
  REQUIRE(t.notes.size() == 2);
  CHECK_THAT(t.notes[0], ContainsSubstring("2 follow-up turns"));
  CHECK_THAT(t.notes[1], ContainsSubstring("1 turns name a parent"));
  CHECK_THAT(error_of(row("10", "-1", "0") + row("10", "-1", "0")),
             ContainsSubstring("line 2: id \"10\" was used before"));
}

TEST_CASE("ShareGPT's lengths are estimated and its turns share their history") {
  const std::string text(100, 'q');  // 25 tokens
  const trace t = read("[{\"id\":\"x\",\"conversations\":[" + message("human", text) + "," +
                       message("gpt", "answer") + "," + message("human", "more?") + "," +
                       message("gpt", "no") + "]},\n{\"id\":\"y\",\"conversations\":[" +
                       message("human", text) + "," + message("gpt", "other") + "]}]");
  REQUIRE(t.requests.size() == 3);
  CHECK(t.requests[0].prompt_tokens == token_count{25});
  CHECK(t.requests[0].output_tokens == token_count{2});   // ceil(6 / 4)
  CHECK(t.requests[1].prompt_tokens == token_count{28});  // ceil((100 + 6 + 5) / 4)
  CHECK(t.requests[1].after == 0);
  CHECK(t.requests[1].session == t.requests[0].session);
  CHECK(t.requests[2].after == none);
  // Blocks of 64 bytes: the first is full and shared by all, the second is partial.
  CHECK(t.prefix_of(t.requests[0])[0] == t.prefix_of(t.requests[1])[0]);
  CHECK(t.prefix_of(t.requests[0])[0] == t.prefix_of(t.requests[2])[0]);
  CHECK(t.prefix_of(t.requests[0])[1] != t.prefix_of(t.requests[1])[1]);
  CHECK(t.notes.size() == 2);
}

TEST_CASE("ShareGPT's oddities are counted, its damages refused") {
  const trace t = read(
      "[{\"conversations\":[" + message("system", "be brief") + "," + message("gpt", "hello") +
      "," + message("human", "a") + "," + message("human", "b") + "," + message("gpt", "c") + "," +
      message("human", "d") + "," + message("gpt", "") + "," + message("human", "e") + "]}]");
  REQUIRE(t.requests.size() == 1);
  CHECK(t.requests[0].prompt_tokens == token_count{4});  // ceil((8 + 5 + 1 + 1) / 4)
  REQUIRE(t.notes.size() == 4);
  CHECK_THAT(t.notes[2], ContainsSubstring("1 empty answers"));
  CHECK_THAT(t.notes[3], ContainsSubstring("1 conversations end with a question"));
  CHECK_THAT(error_of("[]"), ContainsSubstring("holds no requests"));
  CHECK_THAT(error_of("[{\"id\":1}]"),
             ContainsSubstring("conversation 1, field \"conversations\""));
  CHECK_THAT(error_of("[{\"conversations\":[{\"from\":\"gpt\"}]}]"),
             ContainsSubstring("field \"value\""));
  CHECK_THAT(error_of("[{\"conversations\":7}]"), ContainsSubstring("found 7"));
  CHECK_THAT(error_of("[{\"conversations\":[" + message("human", "a")),
             ContainsSubstring("not valid JSON"));
}
