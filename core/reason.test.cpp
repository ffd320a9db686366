// Every reason has a name and a sentence.
#include "core/reason.hpp"

#include <set>

#include "tests/support/catch.hpp"

using namespace octavo;

TEST_CASE("every reason has a name of its own and a sentence that ends") {
  std::set<std::string> names;
  std::set<std::string> sentences;
  for (std::uint8_t i = 0; i < reason_count; ++i) {
    const auto why = static_cast<reason>(i);
    const std::string text = sentence(why, 11, 22);
    CAPTURE(to_string(why), text);
    CHECK(to_string(why) != "unknown");
    CHECK(names.insert(std::string{to_string(why)}).second);
    CHECK(sentences.insert(text).second);
    REQUIRE(text.size() > 10);
    CHECK(text.back() == '.');
  }
  CHECK(to_string(static_cast<reason>(reason_count)) == "unknown");
}

TEST_CASE("a sentence shows the reason's numbers") {
  CHECK(sentence(reason::no_free_blocks, 5, 2) == "Waits: it needs 5 KV blocks and 2 are free.");
  CHECK(sentence(reason::rejected_too_long, 5000, 4096) ==
        "Rejected: prompt and output come to 5000 tokens; the most allowed (max-model-len) "
        "is 4096.");
}

TEST_CASE("finishes and rejections are told apart from what merely waits") {
  CHECK(is_finish(reason::finished_eos));
  CHECK(is_finish(reason::rejected_draining));
  CHECK(is_rejection(reason::rejected_never_fits));
  CHECK_FALSE(is_rejection(reason::finished_cancelled));
  CHECK_FALSE(is_finish(reason::preempted_for));
  CHECK_FALSE(is_finish(reason::routed));
}
