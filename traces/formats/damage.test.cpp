// Damaged files: each form cut at every byte, and with bits flipped. The reader
// returns or throws input_error; anything else ends the test.
#include <zlib.h>

#include <array>

#include "tests/support/catch.hpp"
#include "traces/random.hpp"
#include "traces/reader.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using namespace octavo::traces;

namespace {

const std::string octavo_lines =
    "{\"format\":\"octavo.trace/1\",\"prefix_block\":16,\"notes\":[\"n\"]}\n"
    "{\"id\":\"a\",\"arrival_s\":0.5,\"prompt_tokens\":20,\"output_tokens\":3,\"prefix\":[1,\"x\"],"
    "\"max_tokens\":4,\"session\":\"s\",\"tenant\":\"t\",\"priority\":-1,\"cancel_s\":2}\n"
    "{\"id\":\"b\",\"after\":\"a\",\"delay_s\":1.5,\"prompt_tokens\":20,\"output_tokens\":3}\n";
const std::string octavo_document =
    "{\"format\":\"octavo.trace/1\",\"prefix_block\":16,\n\"requests\":[\n"
    "{\"id\":0,\"arrival_s\":0.5,\"prompt_tokens\":20,\"output_tokens\":3,\"prefix\":[1,2]},\n"
    "{\"id\":1,\"after\":0,\"prompt_tokens\":20,\"output_tokens\":3}]}\n";
const std::string mooncake =
    "{\"timestamp\":0,\"input_length\":600,\"output_length\":2,\"hash_ids\":[1,2]}\n"
    "{\"session_id\":1,\"timestamp\":5.5,\"input_length\":6,\"output_length\":2,\"hash_ids\":[3]}\n"
    "{\"session_id\":1,\"delay\":5,\"input_length\":6,\"output_length\":2,\"hash_ids\":[3]}\n";
const std::string bailian =
    "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":0.1,\"input_length\":20,"
    "\"output_length\":2,\"type\":\"text\",\"turn\":1,\"hash_ids\":[1,2]}\n"
    "{\"chat_id\":2,\"parent_chat_id\":1,\"timestamp\":3,\"input_length\":20,"
    "\"output_length\":2,\"type\":\"text\",\"turn\":2,\"hash_ids\":[1,3]}\n";
const std::string sharegpt =
    "[{\"id\":\"x\",\"conversations\":[{\"from\":\"human\",\"value\":\"h\\u00e9llo "
    "\\\"you\\\"\"},\n"
    "{\"from\":\"gpt\",\"value\":\"hi\"},{\"from\":\"human\",\"value\":\"bye\"},"
    "{\"from\":\"gpt\",\"value\":\"bye\"}]}]\n";
const std::string azure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,109\r\n";
const std::string vidur =
    "arrived_at,num_prefill_tokens,num_decode_tokens\n0.601052,374,44\n1.1851,396,109\n";
const std::string burstgpt =
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,\"ChatGPT\",472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n";

std::string gzipped(const std::string& text) {
  const temp_file file({}, ".gz");
  const gzFile out = gzopen(file.path().c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  return contents_of(file.path());
}

const std::filesystem::path lesson =
    std::filesystem::path(OCTAVO_SOURCE_DIR) / "traces/samples/lesson.jsonl";

constexpr std::size_t forms_count = 10;

std::array<std::string, forms_count> forms() {
  return {octavo_lines, octavo_document, mooncake, bailian,           sharegpt,
          azure,        vidur,           burstgpt, gzipped(mooncake), contents_of(lesson)};
}

/// True if the reader took `bytes`, false if it refused them properly.
bool accepts(const temp_file& file, const std::string& bytes) {
  file.rewrite(bytes);
  try {
    return !read_trace(file.path()).requests.empty();
  } catch (const input_error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("the reader survives every form cut at every byte") {
  const std::string whole = forms()[GENERATE(range(std::size_t{0}, forms_count))];
  const temp_file file;
  INFO(whole);
  REQUIRE(accepts(file, whole));
  std::size_t refused = 0;
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    refused += accepts(file, whole.substr(0, bytes)) ? 0U : 1U;
  }
  // Cutting at a line's end, or inside a last number, leaves a shorter trace.
  CHECK(refused > whole.size() / 2);
}

TEST_CASE("the reader survives flipped bytes in every form") {
  const std::string whole = forms()[GENERATE(range(std::size_t{0}, forms_count))];
  const temp_file file;
  const random_stream draws(1, 1);
  std::size_t refused = 0;
  constexpr std::uint64_t rounds = 4;
  for (std::uint64_t i = 0; i < rounds * whole.size(); ++i) {
    std::string damaged = whole;
    char& byte = damaged[i / rounds];
    byte = static_cast<char>(byte ^ static_cast<char>(1 + draws.below(i, 255)));
    refused += accepts(file, damaged) ? 0U : 1U;
  }
  CHECK(refused > 0);
}

TEST_CASE("a gzipped trace reads like the plain one, whatever its name") {
  const temp_file file(gzipped(mooncake), ".data");
  CHECK(read_trace(file.path()).requests.size() == 3);
  const std::string bytes = gzipped(mooncake);
  const temp_file cut(bytes.substr(0, bytes.size() - 9), ".gz");
  CHECK_THROWS_AS(read_trace(cut.path()), input_error);
}
