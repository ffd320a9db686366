// Simulated steps in wall time, on a clock that a wait moves: how long they take, and
// what they say.
#include "sim/world/paced_executor.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "model/tokenizer/byte_tokenizer.hpp"
#include "sim/cost/constant.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;

namespace {

/// A clock that a wait moves, by `late_s` too far. The engine's time began at 10 s.
struct toy_clock {
  double now_s = 10;
  double late_s = 0;
  pace hands() {
    return {[this] { return now_s; },
            [this](double moment) { now_s = std::max(now_s, moment + late_s); },
            [](micros at) { return 10 + static_cast<double>(at.raw()) * 1e-6; }};
  }
  [[nodiscard]] micros engine_now() const { return micros{std::llround((now_s - 10) * 1e6)}; }
};

step_ptr step_of(std::int32_t first, std::int32_t count, std::uint16_t samples) {
  auto plan = std::make_shared<step>();
  sequence_work work;
  work.slot = 3;
  work.request = request_id{7};
  work.first_position = token_count{first};
  work.count = token_count{count};
  work.samples = samples;
  work.decode = count == 1;
  plan->work.push_back(work);
  return plan;
}

step_ptr admitting(step_ptr plan, std::int32_t prompt, sampling_parameters how) {
  admission_command a;
  a.slot = 3;
  a.request = request_id{7};
  a.prompt_tokens = a.query_tokens = token_count{prompt};
  a.end_tokens = token_count{1000};
  a.sampling = std::make_shared<const sampling_parameters>(how);
  plan->admissions.push_back(a);
  return plan;
}

}  // namespace

TEST_CASE("a step takes as long as the cost model says, and one waits for the other") {
  toy_clock clock;
  paced_executor device{std::make_shared<constant_cost>(50'000.0),
                        {},
                        std::make_shared<const model::tokenizer>(model::byte_tokenizer()),
                        clock.hands(),
                        true};
  device.submit(admitting(step_of(0, 20, 1), 20, {}));
  device.submit(step_of(20, 1, 1));
  static_cast<void>(device.await());
  CHECK(clock.now_s == Catch::Approx(10.05));
  static_cast<void>(device.await());
  CHECK(clock.now_s == Catch::Approx(10.10));
}

TEST_CASE("steps that are planned ahead do not drift, however late the host wakes up") {
  toy_clock clock;
  clock.late_s = 0.002;
  paced_executor device{std::make_shared<constant_cost>(50'000.0),
                        {},
                        std::make_shared<const model::tokenizer>(model::byte_tokenizer()),
                        clock.hands(),
                        true};
  device.submit(admitting(step_of(0, 20, 1), 20, {}));
  step_ptr ahead = step_of(20, 1, 1);
  for (int steps = 1; steps < 100; ++steps) {
    static_cast<void>(device.await());
    // The next is handed over late, but was planned while the last one ran.
    device.submit(std::move(ahead));
    ahead = step_of(20 + steps, 1, 1);
    ahead->planned_at = clock.engine_now();
  }
  static_cast<void>(device.await());
  CHECK(clock.now_s == Catch::Approx(10 + 100 * 0.050 + 0.002));
  // Planned after the device fell idle: it begins then.
  clock.now_s += 1;
  ahead->planned_at = clock.engine_now();
  device.submit(std::move(ahead));
  static_cast<void>(device.await());
  CHECK(clock.now_s == Catch::Approx(16.002 + 0.050 + 0.002));
}

TEST_CASE("the text is a placeholder that goes on where it was, and ends by its length") {
  toy_clock clock;
  paced_executor device{std::make_shared<constant_cost>(1000.0),
                        {},
                        std::make_shared<const model::tokenizer>(model::byte_tokenizer()),
                        clock.hands(),
                        false};
  std::string text;
  const std::int32_t length = placeholder_length(request_id{7}, 0);
  CHECK(length >= 16);
  CHECK(length <= 400);
  for (std::int32_t number = 1; number <= length; ++number) {
    device.submit(number == 1 ? admitting(step_of(0, 20, 1), 20, {}) : step_of(18 + number, 1, 1));
    const step_ptr done = device.await();
    text += done->result.text;
    REQUIRE(done->result.tokens.size() == 1);
    CHECK(done->result.finishes.empty() == (number < length));
  }
  CHECK(text.substr(0, 15) == " This text is a");
  CHECK(std::ssize(text) == length);
}

namespace {

struct told {
  std::string text;
  std::int32_t tokens = 0;
  finish_kind end = finish_kind::none;
};

/// One request's answer of at most `most` tokens, after a prompt of 20.
told answer_of(const model::tokenizer& words, sampling_parameters how, std::int32_t most = 200) {
  toy_clock clock;
  paced_executor device{std::make_shared<constant_cost>(1000.0),
                        {},
                        std::make_shared<const model::tokenizer>(words),
                        clock.hands(),
                        false};
  told all;
  how.ignore_eos = true;
  while (all.tokens < most && all.end == finish_kind::none) {
    const bool first = all.tokens == 0;
    step_ptr plan = first ? admitting(step_of(0, 20, 1), 20, how) : step_of(19 + all.tokens, 1, 1);
    if (first) plan->admissions.front().end_tokens = token_count{20 + most};
    device.submit(std::move(plan));
    const step_result done = device.await()->result;
    ++all.tokens;
    all.text += done.text;
    if (!done.finishes.empty()) all.end = done.finishes.front().kind;
  }
  return all;
}

}  // namespace

TEST_CASE("a stop string ends the placeholder, and none of it is told") {
  sampling_parameters how;
  how.stop = {"nowhere", "a placeholder"};
  const told short_one = answer_of(model::byte_tokenizer(), how);
  CHECK(short_one.end == finish_kind::stop_string);
  CHECK(short_one.text == " This text is ");
  how.include_stop_str_in_output = true;
  CHECK(answer_of(model::byte_tokenizer(), how).text == " This text is a placeholder");
  how.min_tokens = 60;
  const told later = answer_of(model::byte_tokenizer(), how);
  CHECK(later.tokens > 100);  // in the next round of the sentence
  CHECK(later.end == finish_kind::stop_string);
}

TEST_CASE("a stop token ends the placeholder without its text") {
  sampling_parameters how;
  how.stop_token_ids = {'x'};
  const told one = answer_of(model::byte_tokenizer(), how);
  CHECK(one.end == finish_kind::stop_token);
  CHECK(one.text == " This te");
  CHECK(one.tokens == 9);
}

TEST_CASE("the last token lets out what could have become a stop string") {
  sampling_parameters how;
  how.stop = {"This is not said"};
  CHECK(answer_of(model::byte_tokenizer(), how, 5).text == " This");
}

TEST_CASE("the placeholder begins with no control token") {
  model::gguf_vocabulary vocabulary;
  vocabulary.model = "llama";
  std::vector<std::string> texts{"<bos>", "\xE2\x96\x81"};  // the second: a space
  const std::string digits = "0123456789ABCDEF";
  for (const char high : digits) {
    for (const char low : digits) texts.push_back(std::string("<0x") + high + low + ">");
  }
  vocabulary.tokens = {texts.begin(), texts.end()};
  vocabulary.scores.assign(texts.size(), 0.0F);
  vocabulary.token_types.assign(texts.size(), 6);
  vocabulary.token_types[0] = 3;
  vocabulary.token_types[1] = 1;
  vocabulary.bos_token_id = 0;
  vocabulary.add_bos_token = true;
  const auto words = model::tokenizer::from_gguf(vocabulary);
  REQUIRE(words.encode("a").front() == 0);
  sampling_parameters how;
  how.skip_special_tokens = false;
  const std::string text = answer_of(words, how).text;
  CHECK(text.find("This text is a placeholder") <= 1);
  CHECK(text.find("<bos>") == std::string::npos);
}

TEST_CASE("samples of one prompt, a fork and a return each go on with their own text") {
  toy_clock clock;
  paced_executor device{std::make_shared<constant_cost>(1000.0),
                        {},
                        std::make_shared<const model::tokenizer>(model::byte_tokenizer()),
                        clock.hands(),
                        false};
  sampling_parameters how;
  how.stop = {"This t"};
  how.ignore_eos = true;
  device.submit(admitting(step_of(0, 20, 2), 20, how));
  CHECK(device.await()->result.text == "  ");
  // The parent is one token further when the child's fork is carried out.
  for (std::int32_t position = 20; position < 25; ++position) {
    device.submit(step_of(position, 1, 1));
    CHECK(device.await()->result.finishes.empty());
  }
  step_ptr forked = step_of(20, 1, 1);
  forked->forks.push_back({3, 4, 1, true, 1});
  forked->work.front().slot = 4;
  device.submit(std::move(forked));
  CHECK(device.await()->result.finishes.empty());
  // The parent comes back with its whole text to compute.
  device.submit(admitting(step_of(0, 26, 1), 20, how));
  const step_ptr done = device.await();
  REQUIRE(done->result.finishes.size() == 1);
  CHECK(done->result.finishes.front().kind == finish_kind::stop_string);
  CHECK(done->result.text.empty());
}
