// The CSV forms: Azure, Vidur/Splitwise and BurstGPT, as their publishers write
// them and as damaged files have them.
#include "traces/formats/csv.hpp"

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

const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n";
const std::string vidur = "arrived_at,num_prefill_tokens,num_decode_tokens\n";
const std::string burstgpt =
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";

}  // namespace

TEST_CASE("Azure timestamps count from the first row, rounded from 100 ns") {
  const trace t = read(azure +
                       "2023-11-16 23:59:59.9999996,10,1\r\n"
                       "2023-11-17 00:00:00.0000000,11,2\r\n"
                       "2023-11-17 00:00:00.0000002,11,2\r\n"
                       "2023-11-17 00:00:01.5000000,12,3");
  REQUIRE(t.requests.size() == 4);
  CHECK(t.requests[0].arrival == micros{0});
  CHECK(t.requests[1].arrival == micros{0});  // 0.4 us
  CHECK(t.requests[2].arrival == micros{1});  // 0.6 us
  CHECK(t.requests[3].arrival == micros{1'500'000});
  CHECK(t.requests[3].prompt_tokens == token_count{12});
  CHECK(t.requests[3].output_tokens == token_count{3});
}

TEST_CASE("Azure timestamps may carry an offset, leap days and no fraction") {
  const trace t = read(azure +
                       "2024-02-28 23:00:00+00:00,1,1\n"
                       "2024-02-29 01:00:00.000001+01:00,1,1\n"
                       "2024-03-01T00:00:00Z,1,1\n");
  CHECK(t.requests[1].arrival == micros{3'600'000'001});
  CHECK(t.requests[2].arrival == micros{25 * 3'600'000'000LL});
}

TEST_CASE("Azure rows before the first one are sorted and the trace starts at 0") {
  const trace t = read(azure + "2023-11-16 18:00:05,1,1\n2023-11-16 18:00:03,2,1\n");
  CHECK(t.requests[0].prompt_tokens == token_count{2});
  CHECK(t.requests[0].arrival == micros{0});
  CHECK(t.requests[1].arrival == micros{2'000'000});
  CHECK(t.notes.size() == 1);
}

TEST_CASE("an Azure trace of more than 31 years is refused") {
  CHECK_THAT(error_of(azure + "1990-11-16 18:00:05,1,1\n2023-11-16 18:00:03,2,1\n"),
             ContainsSubstring("line 3"));
}

TEST_CASE("bad Azure timestamps are refused") {
  const std::string timestamp =
      GENERATE("2023-13-16 18:00:00", "2023-02-29 18:00:00", "2023-11-16 24:00:00", "2023-11-16",
               "2023-11-16 18:00:00.1x", "16.11.2023 18:00", "", "NaN", "9999-11-16 18:00:00",
               "2023-11-16 18:00:00+1", "-023-11-16 18:00:00");
  INFO(timestamp);
  CHECK_THAT(error_of(azure + timestamp + ",1,1\n"),
             ContainsSubstring("line 2, field \"TIMESTAMP\""));
}

TEST_CASE("Vidur's columns are found by name, in any order and case") {
  const trace t = read(
      "pd_ratio,Num_Decode_Tokens,arrived_at,num_prefill_tokens\n"
      "0.5,7,1e-05,3.0\n0.5,8,2.5,4\n");
  REQUIRE(t.requests.size() == 2);
  CHECK(t.requests[0].arrival == micros{10});
  CHECK(t.requests[0].prompt_tokens == token_count{3});
  CHECK(t.requests[0].output_tokens == token_count{7});
  CHECK(t.requests[1].arrival == micros{2'500'000});
}

TEST_CASE("Splitwise's columns are known") {
  const trace t = read(
      "request_id,request_type,application_id,arrival_timestamp,batch_size,"
      "prompt_size,token_size\n0,0,0,1.5,1,100,20\n");
  CHECK(t.requests[0].arrival == micros{1'500'000});
  CHECK(t.requests[0].prompt_tokens == token_count{100});
  CHECK(t.requests[0].output_tokens == token_count{20});
}

TEST_CASE("bad rows of a table are refused with line and field") {
  const auto [row, message] = GENERATE(table<std::string, std::string>({
      {"0.5,0,1", "line 2, field \"num_prefill_tokens\": found 0"},
      {"0.5,1,0", "field \"num_decode_tokens\": found 0"},
      {"0.5,-1,1", "found -1"},
      {"nan,1,1", "field \"arrived_at\": found nan"},
      {"inf,1,1", "found inf"},
      {"-0.5,1,1", "found -0.5"},
      {"1e99,1,1", "found 1e99"},
      {"0.5,,1", "found nothing"},
      {"0.5,1", "has 2 cells; the header has 3"},
      {"0.5,1,1,1", "has 4 cells"},
      {"0.5,600000000,1", "expected an integer from 1 to 500000000"},
      {"0.5,x\x01y,1", "found x?y"},
  }));
  INFO(row);
  CHECK_THAT(error_of(vidur + row + "\n"), ContainsSubstring(message));
}

TEST_CASE("two columns of one meaning are refused") {
  CHECK_THAT(error_of("arrived_at,arrival_s,num_prefill_tokens,num_decode_tokens\n0,0,1,1\n"),
             ContainsSubstring("mean the same"));
}

TEST_CASE("a table without rows is refused") {
  CHECK_THAT(error_of(vidur), ContainsSubstring("holds no requests"));
}

TEST_CASE("BurstGPT's failed requests are left out and counted, ties noted") {
  const trace t = read(burstgpt +
                       "5,ChatGPT,472,18,490,Conversation log\n"
                       "45,\"GPT-4, new\",1087,230,1317,Conversation log\n"
                       "45,GPT-4,417,0,417,API log\n"
                       "45,GPT-4,100,7,107,API log\n");
  REQUIRE(t.requests.size() == 3);
  CHECK(t.format == "burstgpt-csv");
  CHECK(t.requests[0].arrival == micros{5'000'000});
  CHECK(t.requests[1].prompt_tokens == token_count{1087});
  CHECK(t.requests[2].output_tokens == token_count{7});
  REQUIRE(t.notes.size() == 2);
  CHECK_THAT(t.notes[0], ContainsSubstring("1 failed requests"));
  CHECK_THAT(t.notes[1], ContainsSubstring("1 requests share their whole second"));
  CHECK_THAT(error_of(burstgpt + "5,ChatGPT,0,18,18,API log\n"),
             ContainsSubstring("field \"Request tokens\": found 0"));
}

TEST_CASE("a byte order mark and blank lines do not disturb") {
  CHECK(read("\xef\xbb\xbf\n" + vidur + "\n0,1,1\n\n").requests.size() == 1);
  CHECK_THAT(error_of(vidur + "\n0,1,1\n\n0,0,1\n"), ContainsSubstring("line 5"));
}
