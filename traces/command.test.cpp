// `octavo trace` as it is typed: what it prints, writes and returns.
#include "traces/command.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/support/catch.hpp"
#include "traces/reader.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using namespace octavo::traces;
using Catch::Matchers::ContainsSubstring;

namespace {

struct outcome {
  int code;
  std::string out;
  std::string err;
};

outcome run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "octavo trace");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  std::ostringstream out;
  std::ostringstream err;
  const int code = trace_command(static_cast<int>(argv.size()), argv.data(), out, err);
  return {code, out.str(), err.str()};
}

const std::string samples = std::string(OCTAVO_SOURCE_DIR) + "/traces/samples/";

}  // namespace

TEST_CASE("convert writes octavo.trace/1 and passes notes on") {
  const temp_file in("num_prefill_tokens,num_decode_tokens\n5,6\n7,8\n");
  const temp_file target({}, ".jsonl");
  const outcome converted = run({"convert", in.path().string(), target.path().string()});
  CHECK(converted.code == 0);
  CHECK_THAT(converted.err, ContainsSubstring("no arrival times"));
  const trace t = read_trace(target.path());
  CHECK(t.format == "octavo.trace/1");
  CHECK(t.requests[1].prompt_tokens == token_count{7});
  REQUIRE(t.notes.size() == 2);
  CHECK(t.notes[0] == "Converted from vidur-csv.");
  CHECK(run({"convert", in.path().string(), "-"}).out == contents_of(target.path()));
}

TEST_CASE("inspect counts by hand-checked numbers, as a table and as JSON") {
  // Blocks 1 2 | 1 3 | 4 2: only the second prompt's first block was known from the front.
  const temp_file in(
      "{\"format\":\"octavo.trace/1\",\"prefix_block\":4}\n"
      "{\"id\":0,\"arrival_s\":1,\"prompt_tokens\":8,\"output_tokens\":1,\"prefix\":[1,2]}\n"
      "{\"id\":1,\"arrival_s\":2,\"prompt_tokens\":7,\"output_tokens\":2,\"prefix\":[1,3]}\n"
      "{\"id\":2,\"after\":1,\"prompt_tokens\":6,\"output_tokens\":9,\"prefix\":[4,2],"
      "\"session\":\"s\"}\n");
  const outcome table = run({"inspect", in.path().string()});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, ContainsSubstring("requests   3, 1 of them after another has finished"));
  CHECK_THAT(table.out, ContainsSubstring("would hit 1 of 6 blocks, 16.7 %"));
  const auto json = nlohmann::json::parse(run({"inspect", "--json", in.path().string()}).out);
  CHECK(json["timed_requests"] == 2);
  CHECK(json["duration_s"] == 1.0);
  CHECK(json["rate_rps"] == 2.0);
  CHECK(json["sessions"] == 1);
  CHECK(json["prompt_tokens"]["mean"] == 7.0);
  CHECK(json["output_tokens"]["p50"] == 2);
  CHECK(json["output_tokens"]["p99"] == 9);
  CHECK(json["prefix_blocks_hit"] == 1);
}

TEST_CASE("the committed chat sample is made by the command its README states") {
  // The indented lines of the README are the command; its words behind "octavo trace".
  std::istringstream readme(contents_of(samples + "README.md"));
  std::vector<std::string> words;
  for (std::string line; std::getline(readme, line);) {
    if (!line.starts_with("    ")) continue;
    std::istringstream parts(line);
    for (std::string word; parts >> word;) {
      if (word != "\\") words.push_back(word);
    }
  }
  REQUIRE(words.size() > 4);
  REQUIRE(words[1] == "trace");
  REQUIRE(words[words.size() - 2] == "--out");
  words.back() = "-";
  words.erase(words.begin(), words.begin() + 2);
  const outcome made = run(words);
  CHECK(made.code == 0);
  CHECK(made.out == contents_of(samples + "chat_sample.jsonl"));
}

TEST_CASE("the lesson sample is a burst of long and short requests") {
  const trace t = read_trace(samples + "lesson.jsonl");
  CHECK(t.requests.size() == 8);
  CHECK(t.requests.back().arrival <= micros{1'000'000});
}

TEST_CASE("errors go to the error stream and return 2") {
  const outcome missing = run({"inspect", "no/such/trace"});
  CHECK(missing.code == 2);
  CHECK(missing.out.empty());
  CHECK_THAT(missing.err, ContainsSubstring("error: no/such/trace: cannot be opened"));
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"inspect"},
           {"frobnicate"},
           {"synth", "--requests", "-1"},
           {"synth", "--cv", "0"},
           {"synth", "--arrivals", "weekly"},
           {"synth", "--prompt-mean", "5", "--prompt-median", "5"},
           {"synth", "--requests", "1", "--out", "no/such/folder/x"}}) {
    const outcome refused = run(arguments);
    CHECK(refused.code == 2);
    CHECK_FALSE(refused.err.empty());
  }
}

TEST_CASE("help is no error") {
  CHECK(run({"--help"}).code == 0);
  const outcome help = run({"synth", "--help"});
  CHECK(help.code == 0);
  CHECK_THAT(help.out, ContainsSubstring("--peak-to-trough"));
}
