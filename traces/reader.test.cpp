// Real traces, where they are at hand: row counts and statistics against those
// that their publishers state.
#include "traces/reader.hpp"

#include <unordered_set>

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::traces;
using Catch::Approx;

namespace {

const std::filesystem::path folder = std::filesystem::path(OCTAVO_SHARED_DIR) / "traces";

bool absent(const std::string& name) {
  if (std::filesystem::exists(folder / name)) return false;
  WARN("skipped: " << name << " absent");
  return true;
}

/// The share of blocks that an endless cache would hold: known ids, counted from the front.
double hit_rate(const trace& t) {
  std::unordered_set<std::uint64_t> seen;
  std::size_t hits = 0;
  for (const request& r : t.requests) {
    bool hit = true;
    for (const auto id : t.prefix_of(r)) {
      hit = hit && seen.contains(id);
      hits += hit ? 1U : 0U;
    }
    for (const auto id : t.prefix_of(r)) seen.insert(id);
  }
  return static_cast<double>(hits) / static_cast<double>(t.prefix_ids.size());
}

double mean(const trace& t, token_count request::*length) {
  double sum = 0;
  for (const request& r : t.requests) sum += (r.*length).raw();
  return sum / static_cast<double>(t.requests.size());
}

}  // namespace

TEST_CASE("Azure's conversation trace has its published rows, means and span") {
  if (absent("AzureLLMInferenceTrace_2023_conv.csv")) return;
  const trace t = read_trace(folder / "AzureLLMInferenceTrace_2023_conv.csv");
  CHECK(t.format == "azure-csv");
  REQUIRE(t.requests.size() == 19366);
  CHECK(mean(t, &request::prompt_tokens) == Approx(1155).margin(0.5));
  CHECK(mean(t, &request::output_tokens) == Approx(211).margin(0.5));
  CHECK(t.requests[0].arrival == micros{0});
  // 18:15:46.6805900 to 18:15:50.9951690, and to 19:14:08.4025270 in the last row.
  CHECK(t.requests[1].arrival == micros{4'314'579});
  CHECK(t.requests.back().arrival == micros{3'501'721'937});
  CHECK(t.requests.back().output_tokens == token_count{183});
  CHECK(t.notes.empty());
}

TEST_CASE("Azure's code trace has its published rows") {
  if (absent("AzureLLMInferenceTrace_2023_code.csv")) return;
  CHECK(read_trace(folder / "AzureLLMInferenceTrace_2023_code.csv").requests.size() == 8819);
}

TEST_CASE("Mooncake's traces have their published rows and prefix hit rates") {
  if (absent("mooncake_conversation_trace.jsonl")) return;
  const trace conversation = read_trace(folder / "mooncake_conversation_trace.jsonl");
  CHECK(conversation.format == "mooncake-jsonl");
  CHECK(conversation.requests.size() == 12031);
  CHECK(conversation.prefix_block == token_count{512});
  CHECK(hit_rate(conversation) == Approx(0.366).margin(0.0005));
  CHECK(conversation.notes.empty());
  if (absent("mooncake_synthetic_trace.jsonl")) return;
  const trace synthetic = read_trace(folder / "mooncake_synthetic_trace.jsonl");
  CHECK(synthetic.requests.size() == 3993);
  CHECK(hit_rate(synthetic) == Approx(0.640).margin(0.0005));
}

TEST_CASE("a Mooncake-like trace of 16-token blocks is understood, and the note says so") {
  if (absent("sharegpt_llama31_8b_300_blocks16.jsonl")) return;
  const trace t = read_trace(folder / "sharegpt_llama31_8b_300_blocks16.jsonl");
  REQUIRE(t.requests.size() == 300);
  CHECK(t.prefix_block == token_count{16});
  CHECK(t.requests[0].arrival == micros{46'927});  // 46.926808 ms
  CHECK(mean(t, &request::prompt_tokens) == Approx(857).margin(0.5));
  CHECK(mean(t, &request::output_tokens) == Approx(653).margin(0.5));
  CHECK(hit_rate(t) == Approx(0.075).margin(0.0005));
  REQUIRE(t.notes.size() == 1);
  CHECK_THAT(t.notes[0], Catch::Matchers::ContainsSubstring("they fit 16"));
}

TEST_CASE("Vidur's tables are read with and without arrivals") {
  if (absent("anchor_conv_poisson_q4_n10000.csv")) return;
  const trace timed = read_trace(folder / "anchor_conv_poisson_q4_n10000.csv");
  REQUIRE(timed.requests.size() == 10000);
  CHECK(timed.requests[0].arrival == micros{601'052});
  CHECK(timed.requests[9999].arrival == micros{2'471'750'989});
  CHECK(timed.notes.empty());
  if (absent("vidur_arxiv_summarization_lengths.csv")) return;
  const trace lengths = read_trace(folder / "vidur_arxiv_summarization_lengths.csv");
  CHECK(lengths.requests.size() == 28257);
  CHECK(lengths.requests[1].prompt_tokens == token_count{2015});
  CHECK(lengths.requests[1].output_tokens == token_count{156});
  CHECK(lengths.requests.back().arrival == micros{0});
  REQUIRE(lengths.notes.size() == 1);
}
