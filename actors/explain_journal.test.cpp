// What is kept of a request's story, for how long, and how it reads.
#include "actors/explain_journal.hpp"

#include <string>

#include "tests/support/catch.hpp"

using namespace octavo;
using actors::explain_journal;
using Catch::Matchers::ContainsSubstring;

namespace {

decision_record submit_of(std::uint64_t id, std::int64_t at_us = 0) {
  decision_record record;
  record.now = micros{at_us};
  record.inputs.push_back(
      {input_kind::submit, micros{at_us}, request_id{id}, token_count{5}, token_count{3}, {}});
  return record;
}

decision_record held_at(std::int64_t at_us, std::uint64_t id, std::int64_t needed) {
  decision_record record;
  record.now = micros{at_us};
  record.held.push_back({{request_id{id}, 0}, reason::no_free_blocks, needed, 2});
  return record;
}

}  // namespace

TEST_CASE("explain: times are seconds with microseconds, decisions are sentences") {
  explain_journal journal{10};
  journal.on_record(submit_of(4, 1'250'000));
  decision_record record;
  record.now = micros{1'500'001};
  record.admitted.push_back({{request_id{4}, 0}, reason::prefix_hit, token_count{32}});
  journal.on_record(record);
  CHECK(journal.explain(request_id{4}) ==
        "1.250000 s  Submitted: 5 prompt tokens, at most 3 to generate.\n"
        "1.500001 s  Admitted with 32 tokens already in the prefix cache.\n");
}

TEST_CASE("explain: the same decision step after step is one line with the last numbers") {
  explain_journal journal{10};
  journal.on_record(submit_of(4));
  for (int i = 1; i <= 5; ++i) journal.on_record(held_at(i * 1000, 4, 10 - i));
  CHECK_THAT(journal.explain(request_id{4}),
             ContainsSubstring("0.001000 s to 0.005000 s (5 steps)  "
                               "Waits: it needs 5 KV blocks and 2 are free."));
}

TEST_CASE("explain: samples are told apart") {
  explain_journal journal{10};
  journal.on_record(submit_of(4));
  decision_record record;
  record.finished.push_back({{request_id{4}, 0}, reason::finished_eos, 0, 0});
  record.finished.push_back({{request_id{4}, 1}, reason::finished_eos, 0, 0});
  journal.on_record(record);
  CHECK_THAT(journal.explain(request_id{4}), ContainsSubstring("s  Finished: the model ended"));
  CHECK_THAT(journal.explain(request_id{4}),
             ContainsSubstring("s, sample 1  Finished: the model ended"));
}

TEST_CASE("explain: a victim learns for whom it was preempted") {
  explain_journal journal{10};
  journal.on_record(submit_of(4));
  decision_record record;
  record.preempted.push_back({{request_id{4}, 0}, {request_id{9}, 0}});
  journal.on_record(record);
  CHECK_THAT(journal.explain(request_id{4}), ContainsSubstring("needed for request 9"));
}

TEST_CASE("explain: what is kept is bounded, the oldest goes first") {
  explain_journal journal{2};
  for (std::uint64_t id = 1; id <= 3; ++id) journal.on_record(submit_of(id));
  CHECK_THAT(journal.explain(request_id{1}), ContainsSubstring("is not known, or is older"));
  CHECK_THAT(journal.explain(request_id{2}), ContainsSubstring("Submitted"));
  CHECK_THAT(journal.explain(request_id{3}), ContainsSubstring("Submitted"));
  // Decisions about others are not kept.
  journal.on_record(held_at(1, 77, 1));
  CHECK_THAT(journal.explain(request_id{77}), ContainsSubstring("is not known"));
}

TEST_CASE("explain: a story of many turns has a bounded length") {
  explain_journal journal{2};
  journal.on_record(submit_of(1));
  for (int i = 0; i < 1000; ++i) {
    decision_record record = held_at(i, 1, i);
    if (i % 2 == 0) record.held[0].why = reason::batch_full;
    journal.on_record(record);
  }
  const std::string story = journal.explain(request_id{1});
  CHECK(std::count(story.begin(), story.end(), '\n') <= 256);
}
