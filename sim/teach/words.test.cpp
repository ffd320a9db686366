// Times, lists and broken lines as a reader sees them.
#include "sim/teach/words.hpp"

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim::teach;

TEST_CASE("times carry the unit that fits them") {
  CHECK(readable(micros{0}) == "0 ms");
  CHECK(readable(micros{850}) == "850 us");
  CHECK(readable(micros{12'340}) == "12.3 ms");
  CHECK(readable(micros{4'207'000}) == "4.207 s");
}

TEST_CASE("lists of requests read as a sentence and say what they leave out") {
  CHECK(list_of({}).empty());
  CHECK(list_of({7}) == "7");
  CHECK(list_of({7, 8}) == "7 and 8");
  CHECK(list_of({1, 2, 3}) == "1, 2 and 3");
  CHECK(list_of({1, 2, 3, 4}, 2) == "1, 2 and 2 more");
}

TEST_CASE("lines break at words and keep their indent") {
  CHECK(wrapped("one two three", 7, 2) == "one two\n  three");
  CHECK(wrapped("a   b", 80, 0) == "a   b");
  CHECK(wrapped("unbreakable word", 4, 1) == "unbreakable\n word");
}

TEST_CASE("text for the terminal holds nothing that a terminal obeys") {
  CHECK(printable("a\x1b[2Jb\n", true) == "a?[2Jb?");
  CHECK(printable("caf\xc3\xa9", true) == "caf\xc3\xa9");
  CHECK(printable("caf\xc3\xa9", false) == "caf??");
  CHECK(display_columns("caf\xc3\xa9") == 4);
}

TEST_CASE("shares and counts") {
  CHECK(percent(1, 3) == "33 %");
  CHECK(percent(1, 1000) == "under 1 %");
  CHECK(percent(0, 5) == "0 %");
  CHECK(percent(5, 0) == "0 %");
  CHECK(counted(1, "step") == "1 step");
  CHECK(counted(2, "step") == "2 steps");
}
