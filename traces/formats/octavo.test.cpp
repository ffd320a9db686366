// octavo.trace/1: each field, both forms, and what is refused with which words.
#include <vector>

#include "tests/support/catch.hpp"
#include "traces/reader.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using namespace octavo::traces;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string header = "{\"format\":\"octavo.trace/1\",\"prefix_block\":16}\n";

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

/// The error that one request line below the header gives.
std::string line_error(const std::string& line) {
  return error_of(header + line + "\n");
}

std::string plain(const std::string& id, const std::string& more) {
  return "{\"id\":\"" + id + "\",\"prompt_tokens\":1,\"output_tokens\":1," + more + "}\n";
}

}  // namespace

TEST_CASE("every field of a request line is taken over") {
  const trace t =
      read(header + R"({"id":"a","arrival_s":0.25,"prompt_tokens":40,"output_tokens":8,)"
                    R"("max_tokens":99,"prefix":[7,18446744073709551615,9],"session":"s",)"
                    R"("priority":-3,"tenant":"t","cancel_s":1.5})"
                    "\n"
                    R"({"id":"b","after":"a","delay_s":2.000001,"prompt_tokens":50,)"
                    R"("output_tokens":5,"session":"s"})");
  REQUIRE(t.requests.size() == 2);
  const request& a = t.requests[0];
  CHECK(a.arrival == micros{250'000});
  CHECK(a.prompt_tokens == token_count{40});
  CHECK(a.output_tokens == token_count{8});
  CHECK(a.max_tokens == token_count{99});
  CHECK(a.priority == -3);
  CHECK(a.cancel == micros{1'500'000});
  CHECK(t.names.at(a.session) == "s");
  CHECK(t.names.at(a.tenant) == "t");
  const auto prefix = t.prefix_of(a);
  CHECK(std::vector<std::uint64_t>(prefix.begin(), prefix.end()) ==
        std::vector<std::uint64_t>{7, 18446744073709551615U, 9});
  CHECK(t.prefix_block == token_count{16});
  const request& b = t.requests[1];
  CHECK(b.after == 0);
  CHECK(b.delay == micros{2'000'001});
  CHECK(b.session == a.session);
  CHECK(b.tenant == none);
  CHECK(b.cancel < micros{0});
  CHECK(b.prefix_count == 0);
  CHECK(t.ids == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a document with a requests array reads like its lines") {
  const std::string first = R"({"id":1,"arrival_s":0,"prompt_tokens":3,"output_tokens":4})";
  const std::string second = R"({"id":2,"after":1,"prompt_tokens":5,"output_tokens":6})";
  const trace one_line =
      read(R"({"requests":[)" + first + "," + second + R"(],"format":"octavo.trace/1"})");
  const trace many_lines = read("{\n  \"format\": \"octavo.trace/1\",\n  \"requests\": [\n" +
                                first + ",\n" + second + "\n]\n}\n");
  for (const trace* t : {&one_line, &many_lines}) {
    REQUIRE(t->requests.size() == 2);
    CHECK(t->requests[1].prompt_tokens == token_count{5});
    CHECK(t->requests[1].after == 0);
    CHECK(t->ids == std::vector<std::string>{"1", "2"});
  }
}

TEST_CASE("an error in a document names the line it stands on") {
  const std::string text =
      "{\n\"requests\": [\n"
      "{\"id\":1,\"arrival_s\":0,\"prompt_tokens\":3,\"output_tokens\":4},\n"
      "{\"id\":2,\"arrival_s\":0,\"prompt_tokens\":0,\"output_tokens\":4}\n]}\n";
  CHECK_THAT(error_of(text), ContainsSubstring("line 4, field \"prompt_tokens\": found 0"));
  CHECK_THAT(error_of("{\"requests\": 5}"), ContainsSubstring("found 5; expected a list"));
  CHECK_THAT(error_of("{\"requests\": [5]}"), ContainsSubstring("an object for each request"));
  CHECK_THAT(error_of("{\n\"format\":\"octavo.trace/1\"\n}"), ContainsSubstring("\"requests\""));
  CHECK_THAT(error_of("{\"requests\": [], \"x\": 1}"), ContainsSubstring("unknown field \"x\""));
}

TEST_CASE("prefix ids may be strings, and equal strings are equal blocks") {
  const trace t = read(header + plain("a", R"("arrival_s":0,"prefix":["0a1b"])") +
                       plain("b", R"("arrival_s":0,"prefix":["0a1b"])") +
                       plain("c", R"("arrival_s":0,"prefix":["0a1c"])"));
  CHECK(t.prefix_of(t.requests[0])[0] == t.prefix_of(t.requests[1])[0]);
  CHECK(t.prefix_of(t.requests[0])[0] != t.prefix_of(t.requests[2])[0]);
}

TEST_CASE("a request may wait for one further down") {
  const trace t = read(header + plain("a", R"("after":"b")") + plain("b", R"("arrival_s":1)"));
  CHECK(t.requests[0].after == 1);
}

TEST_CASE("arrivals out of order are sorted, with waiting requests beside their first") {
  const trace t =
      read(header + plain("late", R"("arrival_s":9)") + plain("late-2", R"("after":"late")") +
           plain("early", R"("arrival_s":1)") + plain("tie", R"("arrival_s":1)"));
  CHECK(t.ids == std::vector<std::string>{"early", "tie", "late", "late-2"});
  CHECK(t.requests[3].after == 2);
  REQUIRE(t.notes.size() == 1);
  CHECK_THAT(t.notes[0], ContainsSubstring("2 requests arrive earlier"));
}

TEST_CASE("a bad request line is refused with line, field, found and expected") {
  const auto [line, message] = GENERATE(table<std::string, std::string>({
      {R"({"id":1,"arrival_s":0,"prompt_tokens":0,"output_tokens":1})",
       "line 2, field \"prompt_tokens\": found 0; expected an integer from 1 to 500000000"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":-5,"output_tokens":1})", "found -5"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":0})",
       "field \"output_tokens\": found 0"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1.5,"output_tokens":1})", "found 1.5"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":"9","output_tokens":1})", "found \"9\""},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":99999999999999999999,"output_tokens":1})",
       "found 99999999999999999999"},
      {R"({"id":1,"arrival_s":-1,"prompt_tokens":1,"output_tokens":1})",
       "field \"arrival_s\": found -1"},
      {R"({"id":1,"arrival_s":NaN,"prompt_tokens":1,"output_tokens":1})", "found NaN"},
      {R"({"id":1,"arrival_s":1e300,"prompt_tokens":1,"output_tokens":1})", "found 1e300"},
      {R"({"id":1,"prompt_tokens":1,"output_tokens":1})", "field \"arrival_s\": found nothing"},
      {R"({"id":1,"arrival_s":0,"output_tokens":1})", "field \"prompt_tokens\": found nothing"},
      {R"({"arrival_s":0,"prompt_tokens":1,"output_tokens":1})", "field \"id\": found nothing"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1,"prority":2})",
       "unknown field \"prority\""},
      {R"({"id":1,"id":2,"arrival_s":0,"prompt_tokens":1,"output_tokens":1})", "\"id\" twice"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1,"delay_s":2})", "no \"after\""},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1,"cancel_s":-1})", "found -1"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1,"priority":3000000000})",
       "from -2147483648 to 2147483647"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":33,"output_tokens":1,"prefix":[1,2]})",
       "2 prefix ids for a prompt of 33 tokens; at 16 tokens a block it needs ceil(33 / 16) = 3"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1,"prefix":[]})", "empty list"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1,"prefix":[-1]})", "found -1"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,)"
       R"("output_tokens":1,"prefix":[18446744073709551616]})",
       "found 18446744073709551616; expected a block id"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1,"prefix":4})",
       "a list of block ids"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1)", "line 2: is not valid JSON"},
      {R"({"id":1,"arrival_s":0,"prompt_tokens":1,"output_tokens":1} {})", "line 2"},
      {R"(17)", "line 2"},
      {R"({"id":1,"after":1,"prompt_tokens":1,"output_tokens":1})", "arrives after itself"},
      {R"({"id":1,"after":7,"prompt_tokens":1,"output_tokens":1})",
       "field \"after\": found 7; expected the id of another request"},
  }));
  INFO(line);
  CHECK_THAT(line_error(line), ContainsSubstring(message));
  CHECK_THAT(line_error(line), ContainsSubstring("octavo-"));  // the file's name
}

TEST_CASE("names that occur twice and rings of waiting requests are refused") {
  CHECK_THAT(error_of(header + plain("a", R"("arrival_s":0)") + plain("a", R"("arrival_s":0)")),
             ContainsSubstring("line 3: id \"a\" was used before, on line 2"));
  CHECK_THAT(error_of(header + plain("a", R"("after":"c")") + plain("b", R"("after":"a")") +
                      plain("c", R"("after":"b")")),
             ContainsSubstring("request \"a\" arrives after itself"));
}

TEST_CASE("the header is checked") {
  CHECK_THAT(error_of("{\"format\":\"octavo.trace/2\"}\n"),
             ContainsSubstring("found octavo.trace/2; expected octavo.trace/1"));
  CHECK_THAT(error_of("{\"format\":\"octavo.trace/1\",\"prefix_blok\":16}\n"),
             ContainsSubstring("unknown field \"prefix_blok\""));
  CHECK_THAT(error_of(header), ContainsSubstring("holds no requests"));
  CHECK_THAT(
      error_of("{\"format\":\"octavo.trace/1\"}\n" + plain("a", R"("arrival_s":0,"prefix":[1])")),
      ContainsSubstring("does not say \"prefix_block\""));
}

TEST_CASE("what is no trace at all is refused with the forms that are") {
  CHECK_THAT(error_of(""), ContainsSubstring("is empty; expected octavo.trace/1"));
  CHECK_THAT(error_of("\n \n"), ContainsSubstring("is empty"));
  CHECK_THAT(error_of("hello,world\n1,2\n"), ContainsSubstring("found hello,world; expected"));
  CHECK_THAT(error_of("{\"prompt_tokens\":5}\n"), ContainsSubstring("a header line"));
  CHECK_THROWS_WITH(read_trace("no/such/trace"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(read_trace(std::filesystem::temp_directory_path()),
                    ContainsSubstring("is a folder"));
}
