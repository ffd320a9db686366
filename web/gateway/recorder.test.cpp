// The recorder: what it writes, the traces' own reader takes back.
#include "web/gateway/recorder.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "traces/reader.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using namespace octavo::gateway;
using actors::event_batch;

namespace {

constexpr token_count block_size{4};
const hash128 secret{1, 2};

/// A request whose prompt is `tokens`, keyed as the gateway does.
request_spec spec_of(std::uint64_t id, std::vector<token_id> tokens, std::int32_t n = 1) {
  request_spec spec;
  spec.id = request_id{id};
  spec.prompt_tokens = token_count{static_cast<std::int32_t>(tokens.size())};
  spec.max_tokens = token_count{20};
  spec.n = n;
  const block_hasher hasher{secret};
  block_key key = hasher.root({});
  for (std::size_t at = 0; at + 4 <= tokens.size(); at += 4) {
    spec.keys.push_back(key = hasher.chain(key, std::span{tokens}.subspan(at, 4)));
  }
  spec.prompt = std::make_shared<std::vector<token_id>>(std::move(tokens));
  return spec;
}

event_batch tokens(std::uint64_t id, int count, std::uint16_t sample = 0) {
  event_batch events;
  for (int i = 0; i < count; ++i) {
    token_event event;
    event.request = request_id{id};
    event.sample = sample;
    events.tokens.push_back(event);
  }
  return events;
}

event_batch finish(std::uint64_t id, reason why, std::uint16_t sample = 0, bool last = true) {
  event_batch events;
  finish_event event;
  event.request = request_id{id};
  event.sample = sample;
  event.request_done = last;
  event.why = why;
  events.finishes.push_back(event);
  return events;
}

/// Remembers what was told.
struct told {
  std::vector<std::string> lines;
  auto log() {
    return [this](const std::string& line) { lines.push_back(line); };
  }
};

std::vector<std::uint64_t> prefix(const traces::trace& of, std::size_t index) {
  const auto ids = of.prefix_of(of.requests.at(index));
  return {ids.begin(), ids.end()};
}

}  // namespace

TEST_CASE("what was served reads back as a trace, by arrival") {
  const traces::temp_file file;
  told faults;
  recorder record{file.path(), block_size, faults.log()};
  request_spec urgent = spec_of(2, {1, 2, 3, 4, 9, 9});
  urgent.priority = -3;
  record.arrived(spec_of(1, {1, 2, 3, 4, 5, 6, 7, 8}), 1000.5);
  record.arrived(urgent, 1002);
  record.heard(tokens(2, 3), 1003);
  record.heard(finish(2, reason::finished_eos), 1003);
  record.heard(tokens(1, 7), 1004);
  record.heard(finish(1, reason::finished_length), 1004);
  // Whole lines lie in the file at once.
  const traces::trace read = traces::read_trace(file.path());
  REQUIRE(read.requests.size() == 2);
  CHECK(read.prefix_block == block_size);
  CHECK(read.name_of(0) == "1");
  CHECK(read.requests[0].arrival == micros{0});
  CHECK(read.requests[0].prompt_tokens == token_count{8});
  CHECK(read.requests[0].output_tokens == token_count{7});
  CHECK(read.requests[0].max_tokens == token_count{20});
  CHECK(read.requests[0].cancel < micros{0});
  CHECK(read.requests[1].arrival == micros{1'500'000});
  CHECK(read.requests[1].output_tokens == token_count{3});
  CHECK(read.requests[1].priority == -3);
  CHECK(faults.lines.empty());
}

TEST_CASE("a request that is known later than one that came after it keeps its arrival") {
  const traces::temp_file file;
  recorder record{file.path(), block_size, {}};
  record.starts(10);
  record.arrived(spec_of(1, {1, 2}), 12);
  record.arrived(spec_of(2, {3, 4, 5}), 10);
  record.close();
  const traces::trace read = traces::read_trace(file.path());
  REQUIRE(read.requests.size() == 2);
  CHECK(read.name_of(0) == "2");
  CHECK(read.requests[0].arrival == micros{0});
  CHECK(read.requests[1].arrival == micros{2'000'000});
}

TEST_CASE("equal beginnings have equal ids, and nothing else has") {
  const traces::temp_file file;
  recorder record{file.path(), block_size, {}};
  const std::vector<std::vector<token_id>> prompts{
      {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 7}, {5, 6}, {5, 6},
      {0, 2, 3, 4, 5, 6}};
  for (std::uint64_t i = 0; i < prompts.size(); ++i) {
    record.arrived(spec_of(i, prompts[i]), static_cast<double>(i));
  }
  record.close();
  const traces::trace read = traces::read_trace(file.path());
  REQUIRE(read.requests.size() == prompts.size());
  CHECK(prefix(read, 0).size() == 2);
  CHECK(prefix(read, 0) == prefix(read, 1));
  CHECK(prefix(read, 0)[0] == prefix(read, 2)[0]);
  CHECK(prefix(read, 0)[1] != prefix(read, 2)[1]);
  CHECK(prefix(read, 3).size() == 1);
  CHECK(prefix(read, 3) == prefix(read, 4));
  CHECK(prefix(read, 3)[0] != prefix(read, 0)[1]);
  CHECK(prefix(read, 5)[0] != prefix(read, 0)[0]);
  CHECK(prefix(read, 5)[1] != prefix(read, 0)[1]);
}

TEST_CASE("a cancelled request tells when, and what it had got") {
  const traces::temp_file file;
  recorder record{file.path(), block_size, {}};
  record.arrived(spec_of(1, {1, 2}), 10);
  record.arrived(spec_of(2, {1, 2}), 11);
  record.heard(tokens(1, 5), 12);
  record.heard(finish(1, reason::finished_cancelled), 12.25);
  record.heard(finish(2, reason::finished_cancelled), 13);
  record.close();
  const traces::trace read = traces::read_trace(file.path());
  REQUIRE(read.requests.size() == 2);
  CHECK(read.requests[0].output_tokens == token_count{5});
  CHECK(read.requests[0].cancel == micros{2'250'000});
  CHECK(read.requests[1].output_tokens == token_count{1});
  CHECK(read.requests[1].cancel == micros{2'000'000});
}

TEST_CASE("each sample has a line, also of those that are under way at the end") {
  const traces::temp_file file;
  recorder record{file.path(), block_size, {}};
  record.arrived(spec_of(8, {1, 2}, 2), 0);
  record.heard(tokens(8, 3, 0), 1);
  record.heard(tokens(8, 4, 1), 1);
  record.heard(finish(8, reason::finished_stop, 1, false), 2);
  record.close();
  record.close();
  record.heard(finish(8, reason::finished_stop, 0), 3);
  const traces::trace read = traces::read_trace(file.path());
  REQUIRE(read.requests.size() == 2);
  const std::size_t first = read.name_of(0) == "8.0" ? 0 : 1;
  CHECK(read.name_of(static_cast<std::uint32_t>(first)) == "8.0");
  CHECK(read.requests[first].output_tokens == token_count{3});
  CHECK(read.requests[first].cancel == micros{2'000'000});
  CHECK(read.requests[1 - first].output_tokens == token_count{4});
  CHECK(read.requests[1 - first].cancel < micros{0});
}

TEST_CASE("what the engine failed was not cancelled, whatever is heard of it later") {
  const traces::temp_file file;
  recorder record{file.path(), block_size, {}};
  record.arrived(spec_of(1, {1, 2}), 10);
  record.arrived(spec_of(2, {1, 2}), 11);
  record.heard(tokens(1, 5), 12);
  record.engine_failed();
  record.heard(finish(1, reason::finished_cancelled), 13);
  record.close();
  const traces::trace read = traces::read_trace(file.path());
  REQUIRE(read.requests.size() == 2);
  CHECK(read.requests[0].output_tokens == token_count{5});
  CHECK(read.requests[1].output_tokens == token_count{1});
  for (const traces::request& one : read.requests) CHECK(one.cancel < micros{0});
}

TEST_CASE("refused requests are left out") {
  const traces::temp_file file;
  recorder record{file.path(), block_size, {}};
  record.arrived(spec_of(1, {1, 2}), 0);
  record.arrived(spec_of(2, {1, 2}), 0);
  record.heard(finish(1, reason::rejected_queue_full), 1);
  record.heard(tokens(2, 1), 1);
  record.heard(finish(2, reason::finished_eos), 1);
  record.close();
  const traces::trace read = traces::read_trace(file.path());
  REQUIRE(read.requests.size() == 1);
  CHECK(read.name_of(0) == "2");
}

TEST_CASE("a file that cannot be written is refused at the start") {
  CHECK_THROWS_AS((recorder{"/no/such/folder/t.jsonl", block_size, {}}), input_error);
  CHECK_THROWS_AS((recorder{"t.jsonl.gz", block_size, {}}), input_error);
  if (std::filesystem::exists("/dev/full")) {
    CHECK_THROWS_AS((recorder{"/dev/full", block_size, {}}), input_error);
  }
}
