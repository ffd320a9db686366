// Simulated steps in wall time, on a clock that a wait moves: how long they take, and
// what they say.
#include "sim/world/paced_executor.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "model/tokenizer/byte_tokenizer.hpp"
#include "sim/cost/constant.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;

namespace {

/// A clock that a wait moves.
struct toy_clock {
  double now_s = 10;
  pace hands() {
    return {[this] { return now_s; }, [this](double moment) { now_s = std::max(now_s, moment); }};
  }
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
