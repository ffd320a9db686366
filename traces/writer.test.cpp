// Writing and reading back gives an equal trace.
#include "traces/writer.hpp"

#include <sstream>

#include "tests/support/catch.hpp"
#include "traces/reader.hpp"
#include "traces/synth.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using namespace octavo::traces;

namespace {

std::string name(const trace& t, std::uint32_t index) {
  return index == none ? "(none)" : t.names[index];
}

/// Equal in all that a trace says; names' order in the table says nothing.
void check_equal(const trace& a, const trace& b) {
  REQUIRE(a.requests.size() == b.requests.size());
  CHECK(a.prefix_block == b.prefix_block);
  CHECK(a.notes == b.notes);
  for (std::uint32_t i = 0; i < a.requests.size(); ++i) {
    const request& x = a.requests[i];
    const request& y = b.requests[i];
    const auto xs = a.prefix_of(x);
    const auto ys = b.prefix_of(y);
    const bool same = x.arrival == y.arrival && x.prompt_tokens == y.prompt_tokens &&
                      x.output_tokens == y.output_tokens && x.max_tokens == y.max_tokens &&
                      x.priority == y.priority && x.after == y.after && x.delay == y.delay &&
                      x.cancel == y.cancel && a.name_of(i) == b.name_of(i) &&
                      name(a, x.tenant) == name(b, y.tenant) &&
                      name(a, x.session) == name(b, y.session) &&
                      std::equal(xs.begin(), xs.end(), ys.begin(), ys.end());
    INFO("request " << i);
    REQUIRE(same);
  }
}

trace small_trace() {
  trace t;
  t.prefix_block = token_count{8};
  t.prefix_ids = {18446744073709551615U, 0, 5};
  t.ids = {"first \"one\"",
           "s\xc3\xa9"
           "cond\n",
           "3"};
  t.names = {"tenant\\", "session"};
  t.notes = {"a note", "another, with \"quotes\""};
  t.requests.resize(3);
  for (request& r : t.requests) r.prompt_tokens = r.output_tokens = token_count{1};
  t.requests[0].arrival = micros{1};
  t.requests[0].prompt_tokens = token_count{9};
  t.requests[0].prefix_count = 2;
  t.requests[0].tenant = 0;
  t.requests[0].cancel = micros{0};
  t.requests[1].arrival = micros{999'999'999'999'999};
  t.requests[1].max_tokens = token_count{500'000'000};
  t.requests[1].priority = -2147483647 - 1;
  t.requests[2].arrival = micros{5};  // ignored beside `after`, and kept
  t.requests[2].after = 1;
  t.requests[2].delay = micros{120'000'000};
  t.requests[2].session = 1;
  t.requests[2].prefix_begin = 2;
  t.requests[2].prefix_count = 1;
  return t;
}

}  // namespace

TEST_CASE("a trace of every field survives writing and reading") {
  const trace t = small_trace();
  const temp_file file;
  write_trace(t, file.path());
  check_equal(t, read_trace(file.path()));
}

TEST_CASE("a line holds what the form says, with seconds as short as they are exact") {
  std::ostringstream out;
  trace t = small_trace();
  t.ids.clear();
  t.requests.resize(1);
  t.requests[0].arrival = micros{1'230'400};
  write_trace(t, out);
  CHECK(out.str() ==
        "{\"format\":\"octavo.trace/1\",\"prefix_block\":8,\"notes\":[\"a note\",\"another, with "
        "\\\"quotes\\\"\"]}\n"
        "{\"id\":0,\"arrival_s\":1.2304,\"prompt_tokens\":9,\"output_tokens\":1,"
        "\"tenant\":\"tenant\\\\\",\"cancel_s\":0,\"prefix\":[18446744073709551615,0]}\n");
}

TEST_CASE("synthetic sessions survive plain and gzipped") {
  synth_options o;
  o.requests = 3000;
  o.prefixes = 3;
  o.turns_max = 4;
  const trace t = synthesize(o);
  const temp_file plain;
  write_trace(t, plain.path());
  check_equal(t, read_trace(plain.path()));
  const temp_file packed({}, ".gz");
  write_trace(t, packed.path());
  check_equal(t, read_trace(packed.path()));
  CHECK(std::filesystem::file_size(packed.path()) < std::filesystem::file_size(plain.path()) / 2);
}

TEST_CASE("a file that cannot be written is an error") {
  CHECK_THROWS_AS(write_trace(small_trace(), std::filesystem::path("no/such/folder/t.jsonl")),
                  input_error);
  CHECK_THROWS_AS(write_trace(small_trace(), std::filesystem::path("no/such/folder/t.gz")),
                  input_error);
  if (std::filesystem::exists("/dev/full")) {
    CHECK_THROWS_AS(write_trace(small_trace(), std::filesystem::path("/dev/full")), input_error);
    const temp_file packed({}, ".gz");
    std::filesystem::remove(packed.path());
    std::filesystem::create_symlink("/dev/full", packed.path());
    CHECK_THROWS_AS(write_trace(small_trace(), packed.path()), input_error);
  }
}
