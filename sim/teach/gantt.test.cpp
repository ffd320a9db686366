// Columns of a row, from spans laid by hand.
#include "sim/teach/gantt.hpp"

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim::teach;

namespace {

span part(int from, int to, activity what) {
  return {micros{from}, micros{to}, what};
}

std::string ascii(const lifeline& life, const time_window& window) {
  recording run;
  run.lives = {life};
  const std::string line = draw(run, window, {"x"}, {false, false}).lines[2].text;
  return line.substr(9);  // behind a name of 8 columns
}

}  // namespace

TEST_CASE("a column shows what fills most of it") {
  lifeline life;
  life.spans = {part(10, 26, activity::waiting), part(26, 50, activity::prefill),
                part(50, 64, activity::decode)};
  // Columns of 10: the third is 6 of waiting and 4 of prefill, the seventh 4 of
  // decode and 6 of nothing.
  CHECK(ascii(life, {micros{0}, micros{80}, 8}) == " ..PPD  ");
}

TEST_CASE("work that is too short for a column is still seen") {
  lifeline life;
  life.spans = {part(0, 48, activity::waiting), part(48, 50, activity::prefill),
                part(50, 52, activity::decode), part(52, 100, activity::waste)};
  CHECK(ascii(life, {micros{0}, micros{100}, 5}) == "..Pxx");
  life.spans = {part(0, 100, activity::waiting)};
  life.hits = {micros{40}};
  CHECK(ascii(life, {micros{0}, micros{100}, 5}) == "..H..");
}

TEST_CASE("a refusal is marked where it came") {
  lifeline life;
  life.rejected = micros{40};
  CHECK(ascii(life, {micros{0}, micros{100}, 5}) == "  R  ");
}

TEST_CASE("steps are numbered where they begin, and useful work is counted") {
  recording run;
  run.lives.resize(2);
  run.lives[0].spans = {part(0, 20, activity::prefill), part(20, 40, activity::waste)};
  run.lives[1].spans = {part(0, 20, activity::waiting), part(20, 60, activity::decode)};
  run.records.resize(2);
  run.records[0].step = step_id{1};
  run.records[1].step = step_id{2};
  run.intervals = {{micros{0}, micros{20}, true}, {micros{20}, micros{60}, true}};
  const picture drawn = draw(run, {micros{0}, micros{60}, 6}, {"0 a", "1 b"}, {false, false});
  REQUIRE(drawn.lines.size() == 5);
  CHECK(drawn.lines[1].text == "step     1 2   ");
  CHECK(drawn.lines[2].text == "0 a      PPxx  ");
  CHECK(drawn.lines[3].text == "1 b      ..DDDD");
  CHECK(drawn.lines[4].text == "at work  111111");
  CHECK(drawn.used ==
        std::set{cell::absent, cell::waiting, cell::prefill, cell::decode, cell::waste});
  CHECK(legend(drawn.used, {false, false}).size() == 4);
}

TEST_CASE("block characters and colours keep the columns") {
  recording run;
  run.lives.resize(1);
  run.lives[0].spans = {part(0, 20, activity::prefill), part(20, 40, activity::decode)};
  const time_window window{micros{0}, micros{40}, 4};
  const drawn_line plain = draw(run, window, {"a"}, {true, false}).lines[2];
  CHECK(plain.text == "a        ▒▒██");
  CHECK(plain.columns == 13);
  const drawn_line coloured = draw(run, window, {"a"}, {true, true}).lines[2];
  CHECK(coloured.text == "a        \x1b[34m▒▒\x1b[32m██\x1b[0m");
  CHECK(coloured.columns == 13);
}

TEST_CASE("long names are cut at whole characters") {
  recording run;
  run.lives.resize(1);
  const std::string name = "0 abcdefghijklmno\xc3\xa9\xc3\xa9z";
  const picture drawn = draw(run, {micros{0}, micros{4}, 4}, {name}, {true, false});
  CHECK(drawn.lines[2].text == "0 abcdefghijklmno\xc3\xa9     ");
}
