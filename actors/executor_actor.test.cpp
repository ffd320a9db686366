// The shell round a real executor: submits, waits, answers; and what the ring
// does when the executor throws.
#include "actors/executor_actor.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <utility>

#include "core/executor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/conversation.hpp"

using namespace octavo;
using test::conversation;
using test::lines;

namespace {

// Ends every text at once; throws in the step it is told to.
class small_executor final : public executor {
 public:
  explicit small_executor(std::uint64_t throws_in) : throws_in_(throws_in) {}
  [[nodiscard]] executor_capabilities capabilities() const override { return {}; }
  void submit(step_ptr plan) override { plan_ = std::move(plan); }
  step_ptr await() override {
    if (plan_->id.raw() == throws_in_) throw std::runtime_error("the device is lost");
    plan_->result.finishes.push_back({0, 0, finish_kind::eos});
    return std::move(plan_);
  }

 private:
  std::uint64_t throws_in_;
  step_ptr plan_;
};

// A device that is slow enough for a second step to come; says what it was told.
class slow_executor final : public executor {
 public:
  explicit slow_executor(std::shared_ptr<lines> says) : says_(std::move(says)) {}
  [[nodiscard]] executor_capabilities capabilities() const override { return {}; }
  void submit(step_ptr plan) override {
    says_->push_back("submit " + std::to_string(plan->id.raw()));
    plans_.push_back(std::move(plan));
  }
  bool wait_for(micros) override { return plans_.size() == 2 || ++waits_ > 8; }
  step_ptr await() override {
    step_ptr done = std::move(plans_.front());
    plans_.pop_front();
    waits_ = 0;
    says_->push_back("await " + std::to_string(done->id.raw()));
    return done;
  }

 private:
  std::shared_ptr<lines> says_;
  std::deque<step_ptr> plans_;
  int waits_ = 0;
};

struct scene {
  explicit scene(std::uint64_t throws_in) : scene(std::make_unique<small_executor>(throws_in), 0) {}
  scene(std::unique_ptr<octavo::executor> core, std::int32_t run_ahead) {
    engine_config config;
    config.num_blocks = block_count{8};
    config.run_ahead = run_ahead;
    actors::scheduler_setup setup;
    setup.config = config;
    setup.log = std::make_shared<decision_log>(to_json(config));
    executor = c.spawn<actors::executor_shell>(std::move(core));
    ring = actors::spawn_replica(c.system(), std::move(setup), executor);
    c.said();
  }
  ~scene() { actors::stop_replica(ring); }
  void submit(std::uint64_t id) {
    request_spec spec;
    spec.id = request_id{id};
    spec.prompt_tokens = token_count{6};
    spec.max_tokens = token_count{5};
    c.submit(ring.scheduler, client, std::move(spec));
  }

  conversation c;
  std::shared_ptr<test::heard> heard = std::make_shared<test::heard>();
  actors::sink_actor client = c.spawn_client("client", heard);
  actors::executor_actor executor;
  actors::replica ring;
};

}  // namespace

TEST_CASE("executor: each step is submitted, awaited and answered") {
  scene s{0};
  s.submit(1);
  const lines said = s.c.said();
  CHECK(std::ranges::count(said, "block manager > executor: step") == 1);
  CHECK(std::ranges::count(said, "executor > scheduler: result") == 1);
  CHECK(s.heard->why(1) == reason::finished_eos);
}

TEST_CASE("executor: a step that was planned ahead starts while the one before it runs") {
  const auto says = std::make_shared<lines>();
  scene s{std::make_unique<slow_executor>(says), 1};
  s.submit(1);
  s.c.pump();
  CHECK(s.heard->why(1) == reason::finished_length);
  REQUIRE(says->size() > 3);
  CHECK(lines(says->begin(), says->begin() + 3) == lines{"submit 1", "submit 2", "await 1"});
}

TEST_CASE("executor: one that throws ends its requests with a reason") {
  scene s{3};  // step 2 only gives request 1's blocks back
  s.submit(1);
  s.c.pump();
  CHECK(s.heard->why(1) == reason::finished_eos);
  s.submit(2);
  s.submit(3);
  s.c.pump();
  s.submit(4);
  s.c.pump();
  for (std::uint64_t id = 2; id <= 4; ++id) {
    CHECK(s.heard->times_ended(id) == 1);
    CHECK(s.heard->why(id) == reason::finished_executor_failed);
  }
}
