// What the ring's actors say to each other, message by message.
#include "actors/scheduler_actor.hpp"

#include <string>
#include <vector>

#include "core/ring.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/conversation.hpp"

using namespace octavo;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::conversation;
using test::held_ring;
using test::lines;

namespace {

engine_config small() {
  engine_config c;
  c.block_size = token_count{4};
  c.num_blocks = block_count{32};
  c.max_model_len = token_count{64};
  c.max_num_seqs = 4;
  c.max_num_batched_tokens = token_count{32};
  return c;
}

request_spec request(std::uint64_t id, std::int32_t prompt = 6, std::int32_t max_tokens = 2) {
  request_spec spec;
  spec.id = request_id{id};
  spec.prompt_tokens = token_count{prompt};
  spec.max_tokens = token_count{max_tokens};
  return spec;
}

request_spec keyed(std::uint64_t id, std::int32_t prompt = 9, std::int32_t max_tokens = 2) {
  request_spec spec = request(id, prompt, max_tokens);
  for (std::int32_t i = 0; i < prompt / 4; ++i) {
    spec.keys.push_back({7, static_cast<std::uint64_t>(i)});
  }
  return spec;
}

// A ring with one client.
struct scene {
  explicit scene(const engine_config& config, log_sink* log = nullptr)
      : ring(c.spawn_ring(config, 0, log)) {}

  void submit(request_spec spec) { c.submit(ring.actors.scheduler, client, std::move(spec)); }
  void cancel(std::uint64_t id) { c.cancel(ring.actors.scheduler, client, id); }
  void drain() { caf::send_as(client, ring.actors.scheduler, actors::drain_atom::value); }
  bool answer(std::vector<sequence_finish> finishes = {}) {
    return c.answer(ring, std::move(finishes));
  }
  /// Answers whatever the executor holds until nothing more comes.
  void run() {
    c.pump();
    for (int steps = 0; steps < 1000; ++steps) {
      if (!answer()) return;
      c.pump();
    }
    FAIL("the ring does not come to rest");
  }
  void check_rest() {
    const auto s = c.statistics(ring);
    CHECK(s.completed + s.rejected + s.cancelled + s.failed == s.submitted);
    CHECK(s.running == 0);
    CHECK(s.waiting == 0);
    CHECK(s.blocks_used == block_count{0});
  }

  conversation c;
  std::shared_ptr<test::heard> heard = std::make_shared<test::heard>();
  actors::sink_actor client = c.spawn_client("client", heard);
  held_ring ring;
};

const lines planned{"scheduler > block manager: commit", "block manager > executor: step"};
const lines matched{"scheduler > prefix cache: match", "prefix cache > block manager: match",
                    "block manager > scheduler: match"};
const lines released{"scheduler > block manager: commit", "block manager > scheduler: result"};

lines operator+(lines a, const lines& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("actors: a request goes round the ring and its tokens come to the client") {
  scene s{small()};
  s.submit(keyed(1));
  CHECK(s.c.said() == lines{"client > scheduler: submit"} + matched + planned);
  REQUIRE(s.ring.held->size() == 1);
  CHECK(s.ring.held->front()->work.front().count == token_count{9});
  s.answer();
  CHECK(s.c.said() == lines{"executor > scheduler: result", "scheduler > client: events",
                            "scheduler > block manager: commit", "block manager > executor: step"});
  CHECK(s.heard->tokens.size() == 1);
  s.answer();
  // The last token: what it held is given back in a commit without tokens.
  CHECK(s.c.said() == lines{"executor > scheduler: result", "scheduler > client: events",
                            "scheduler > block manager: commit",
                            "block manager > scheduler: result", "scheduler > client: events"});
  CHECK(s.heard->times_ended(1) == 1);
  CHECK(s.heard->why(1) == reason::finished_length);
  s.check_rest();
}

TEST_CASE("actors: the prefix cache is asked only where there is something to find") {
  engine_config config = small();
  SECTION("a prompt without keys is private") {
    scene s{config};
    s.submit(request(1));
    CHECK(s.c.said() == lines{"client > scheduler: submit"} + planned);
  }
  SECTION("a prompt without a full block has nothing to find") {
    scene s{config};
    s.submit(keyed(1, 4));  // its last token must run
    CHECK(s.c.said() == lines{"client > scheduler: submit"} + planned);
  }
  SECTION("caching is off") {
    config.enable_prefix_caching = false;
    scene s{config};
    s.submit(keyed(1));
    CHECK(s.c.said() == lines{"client > scheduler: submit"} + planned);
  }
  SECTION("nobody waits") {
    scene s{config};
    s.submit(keyed(1, 9, 5));
    s.c.said();
    s.answer();
    const lines later = s.c.said();
    CHECK(std::ranges::count(later, matched.front()) == 0);
  }
}

TEST_CASE("actors: a prefix is found once its step has succeeded, and not before") {
  scene s{small()};
  s.submit(keyed(1, 9, 8));
  s.c.pump();
  s.submit(keyed(2, 9, 8));  // while the first one's prompt is computed
  s.answer();
  s.c.pump();
  REQUIRE(s.ring.held->size() == 1);
  CHECK(s.ring.held->front()->hits.size() == 2);  // both full blocks
  s.run();
  CHECK(s.heard->ends.size() == 2);
  s.check_rest();
}

TEST_CASE("actors: a failed step publishes nothing") {
  scene s{small()};
  s.submit(keyed(1, 9, 8));
  s.c.pump();
  s.submit(keyed(2, 9, 8));
  s.c.answer(s.ring, {}, step_status::failed);
  s.c.pump();
  CHECK(s.heard->why(1) == reason::finished_executor_failed);
  REQUIRE(s.ring.held->size() == 1);
  CHECK(s.ring.held->front()->hits.empty());
  s.run();
  CHECK(s.heard->why(2) == reason::finished_length);
  s.check_rest();
}

TEST_CASE("actors: what arrives while a step runs waits for its result") {
  scene s{small()};
  s.submit(request(1, 6, 8));
  s.c.said();
  s.submit(request(2));
  s.cancel(1);
  s.submit(request(3));
  // Nothing is decided yet.
  CHECK(s.c.said() == lines{"client > scheduler: submit", "client > scheduler: cancel",
                            "client > scheduler: submit"});
  CHECK(s.heard->ends.empty());
  s.answer();
  s.c.pump();
  // First the result (request 1's token), then the inputs in order.
  REQUIRE(s.heard->tokens.size() == 1);
  CHECK(s.heard->tokens[0].request == request_id{1});
  CHECK(s.heard->why(1) == reason::finished_cancelled);
  REQUIRE(s.ring.held->size() == 1);
  const step& next = *s.ring.held->front();
  REQUIRE(next.work.size() == 2);
  CHECK(next.work[0].request == request_id{2});
  CHECK(next.work[1].request == request_id{3});
  CHECK(next.releases.size() == 1);
  s.run();
  s.check_rest();
}

TEST_CASE("actors: a request that finished in the step is finished, not cancelled") {
  scene s{small()};
  s.submit(request(1, 6, 8));
  s.c.pump();
  s.cancel(1);
  s.answer({{0, 0, finish_kind::eos}});
  s.c.pump();
  CHECK(s.heard->times_ended(1) == 1);
  CHECK(s.heard->why(1) == reason::finished_eos);
  s.check_rest();
}

TEST_CASE("actors: the last request's cancel frees its blocks at once") {
  scene s{small()};
  s.submit(request(1, 6, 8));
  s.c.pump();
  s.answer();
  s.c.said();
  s.cancel(1);
  s.answer();
  CHECK(s.c.said() == lines{"client > scheduler: cancel", "executor > scheduler: result",
                            "scheduler > client: events"} +
                          released + lines{"scheduler > client: events"});
  CHECK(s.ring.held->empty());
  s.check_rest();
}

TEST_CASE("actors: a static batch waits for company, and the clock ends the wait") {
  engine_config config = small();
  config.policy = policy_kind::static_batch;
  config.enable_prefix_caching = false;
  config.static_max_wait = micros{100'000};
  scene s{config};
  s.submit(request(1));
  CHECK(s.c.said() == lines{"client > scheduler: submit"});
  CHECK(s.ring.held->empty());
  SECTION("until the time is up") {
    s.c.advance(99'999us);
    CHECK(s.ring.held->empty());
    s.c.advance(1us);
    CHECK(s.c.said() == lines{"scheduler > scheduler: wake"} + planned);
  }
  SECTION("until it is full") {
    for (std::uint64_t id = 2; id <= 4; ++id) s.submit(request(id));
    s.c.pump();
    REQUIRE(s.ring.held->size() == 1);
    CHECK(s.ring.held->front()->work.size() == 4);
  }
  SECTION("until no more can come") {
    s.drain();
    s.c.pump();
    CHECK(s.ring.held->size() == 1);
  }
  s.run();
  s.c.advance(1s);  // a timer that nobody waits for any more
  CHECK(s.ring.held->empty());
  CHECK(s.heard->times_ended(1) == 1);
  s.check_rest();
}

TEST_CASE("actors: run ahead, the next step is planned while one runs") {
  engine_config config = small();
  config.run_ahead = 1;
  scene s{config};
  s.submit(request(1, 6, 8));
  CHECK(s.c.said() == lines{"client > scheduler: submit", "scheduler > block manager: commit",
                            "scheduler > block manager: commit", "block manager > executor: step",
                            "block manager > executor: step"});
  CHECK(s.ring.held->size() == 2);
  // It stops with the first token; the second step computed for nothing.
  s.answer({{0, 0, finish_kind::eos}});
  s.c.pump();
  CHECK(s.heard->why(1) == reason::finished_eos);
  s.run();
  CHECK(s.c.statistics(s.ring).wasted_tokens == 1);
  s.check_rest();
}

TEST_CASE("actors: run ahead, an answer that overtakes a running step is booked in its turn") {
  engine_config config = small();
  config.run_ahead = 1;
  scene s{config};
  s.submit(request(1, 6, 2));
  s.c.said();
  REQUIRE(s.ring.held->size() == 2);
  s.cancel(1);
  s.answer();
  // The second step still runs when the plan that only releases is answered.
  CHECK(s.c.said() == lines{"client > scheduler: cancel", "executor > scheduler: result",
                            "scheduler > client: events"} +
                          released);
  CHECK(s.ring.held->size() == 1);
  s.submit(request(2, 6, 1));
  s.c.pump();
  CHECK(s.c.statistics(s.ring).steps == 2);  // no boundary yet
  s.answer();
  s.c.pump();
  CHECK(s.c.statistics(s.ring).steps == 3);
  s.run();
  CHECK(s.heard->times_ended(1) == 1);
  CHECK(s.heard->times_ended(2) == 1);
  s.check_rest();
}

TEST_CASE("actors: when the executor dies every request ends, later ones too") {
  engine_config config = small();
  config.run_ahead = GENERATE(0, 1);
  scene s{config};
  s.submit(keyed(1, 9, 8));
  s.submit(keyed(2, 9, 8));
  s.c.pump();
  s.answer();
  s.c.pump();
  REQUIRE_FALSE(s.ring.held->empty());
  s.submit(request(3));
  s.c.kill(s.ring.actors.executor);
  const lines said = s.c.said();
  CHECK(std::ranges::count(said, "scheduler > block manager: fail") > 0);
  s.answer();  // a result from its last moments
  s.c.pump();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    CHECK(s.heard->times_ended(id) == 1);
    CHECK(s.heard->why(id) == reason::finished_executor_failed);
  }
  s.submit(keyed(4, 9, 8));
  s.cancel(4);
  s.submit(request(5));
  s.drain();
  s.submit(request(6));
  s.c.pump();
  CHECK(s.heard->times_ended(4) == 1);
  CHECK(s.heard->why(5) == reason::finished_executor_failed);
  CHECK(s.heard->why(6) == reason::rejected_draining);
  s.check_rest();
}

TEST_CASE("actors: when the cache's actors die every request ends, later ones too") {
  const bool blocks = GENERATE(true, false);
  const int hops = GENERATE(0, 1, 2, 3, 4, 5);
  engine_config config = small();
  config.run_ahead = GENERATE(0, 1);
  INFO((blocks ? "block manager" : "prefix cache") << " after " << hops << " messages");
  scene s{config};
  s.submit(keyed(1, 9, 8));
  for (int i = 0; i < hops; ++i) s.c.step();
  if (blocks) {
    s.c.kill(s.ring.actors.blocks);
  } else {
    s.c.kill(s.ring.actors.prefixes);
  }
  s.c.pump();
  s.submit(keyed(2, 9, 8));
  s.submit(keyed(3, 9, 8));
  s.c.pump();
  s.answer();
  s.c.pump();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    CHECK(s.heard->times_ended(id) == 1);
    CHECK(s.heard->why(id) == reason::finished_executor_failed);
  }
  s.check_rest();
}

TEST_CASE("actors: a cancel at any hop ends the request once and frees its blocks") {
  engine_config config = small();
  config.policy = GENERATE(policy_kind::continuous, policy_kind::static_batch);
  config.run_ahead = GENERATE(0, 1);
  config.static_max_wait = micros{0};
  std::int64_t cancelled = 0;
  for (int hops = 0; hops < 30; ++hops) {
    INFO("after " << hops << " messages");
    scene s{config};
    s.submit(keyed(1, 9, 4));
    for (int i = 0; i < hops; ++i) {
      if (!s.c.step() && !s.answer()) break;
    }
    s.cancel(1);
    s.run();
    CHECK(s.heard->times_ended(1) == 1);
    s.check_rest();
    cancelled += s.c.statistics(s.ring).cancelled;
  }
  CHECK(cancelled >= 5);
  CHECK(cancelled < 30);
}

TEST_CASE("actors: after a drain nobody gets in, and those inside finish") {
  scene s{small()};
  s.submit(request(1, 6, 4));
  s.c.pump();
  s.drain();
  s.submit(request(2));
  s.run();
  CHECK(s.heard->why(1) == reason::finished_length);
  CHECK(s.heard->why(2) == reason::rejected_draining);
  s.check_rest();
}

TEST_CASE("actors: statistics count what happened") {
  scene s{small()};
  s.submit(request(1, 6, 4));
  s.submit(request(2, 60, 40));  // longer than the model
  s.c.pump();
  auto now = s.c.statistics(s.ring);
  CHECK(now.submitted == 1);  // the second waits for the boundary
  CHECK(now.running == 1);
  CHECK(now.blocks_used == block_count{2});  // 6 tokens in blocks of 4
  CHECK(now.blocks_total == block_count{32});
  s.run();
  now = s.c.statistics(s.ring);
  CHECK(now.submitted == 2);
  CHECK(now.completed == 1);
  CHECK(now.rejected == 1);
  CHECK(now.steps == 4);  // one prefill, three decodes
  CHECK(now.generated_tokens == 4);
  s.check_rest();
}

TEST_CASE("actors: explain tells a request's story in order") {
  scene s{small()};
  s.submit(request(7, 6, 2));
  s.run();
  const auto explain = [&](std::uint64_t id) {
    return s.c.ask<std::string>(s.ring.actors.scheduler, actors::explain_atom::value, id);
  };
  const std::string story = explain(7);
  const auto submitted = story.find("Submitted: 6 prompt tokens, at most 2 to generate.");
  const auto admitted = story.find(sentence(reason::admitted, 0, 0));
  const auto finished = story.find(sentence(reason::finished_length, 0, 0));
  INFO(story);
  CHECK(submitted < admitted);
  CHECK(admitted < finished);
  CHECK(finished < story.size());
  CHECK_THAT(explain(99), ContainsSubstring("99 is not known"));
}

namespace {

// One action of a scripted client; both rings play the same script.
struct action {
  enum class kind { submit, cancel, answer, drain } what = kind::answer;
  std::uint64_t id = 0;
};

std::vector<action> script() {
  std::vector<action> all;
  const auto add = [&](action::kind what, std::uint64_t id) { all.push_back({what, id}); };
  for (std::uint64_t id = 1; id <= 40; ++id) {
    add(action::kind::submit, id);
    if (id % 3 == 0) add(action::kind::answer, id);
    if (id % 7 == 0) add(action::kind::cancel, id - 2);
    if (id % 5 == 0) add(action::kind::answer, id);
  }
  add(action::kind::drain, 0);
  add(action::kind::submit, 41);
  return all;
}

request_spec scripted(std::uint64_t id) {
  request_spec spec =
      keyed(id, 3 + static_cast<std::int32_t>(id * 7 % 20), 2 + static_cast<std::int32_t>(id % 9));
  for (block_key& key : spec.keys) key.lo += id % 3;
  spec.n = id % 6 == 0 ? 2 : 1;
  return spec;
}

std::vector<sequence_finish> finishes_of(const step& done) {
  if (done.id.raw() % 4 != 0 || done.work.empty() || done.work[0].samples == 0) return {};
  return {{0, 0, finish_kind::eos}};
}

class payload_keeper final : public log_sink {
 public:
  void on_entry(std::span<const std::byte> payload, const hash128&) override {
    payloads.emplace_back(payload.begin(), payload.end());
  }
  std::vector<std::vector<std::byte>> payloads;
};

// The boundary rule by plain calls: inputs wait while a step runs.
class plain_ring {
 public:
  plain_ring(const engine_config& config, log_sink& sink)
      : log_(to_json(config)), ring_(config, log_) {
    log_.set_sink(&sink);
  }
  void play(const action& a) {
    if (a.what != action::kind::answer) {
      waiting_.push_back(a);
      if (flight_.empty()) at_boundary();
    } else if (!flight_.empty()) {
      complete();
      at_boundary();
    }
  }
  bool idle() const { return flight_.empty(); }

 private:
  void complete() {
    const step_ptr done = flight_.front();
    flight_.pop_front();
    done->result.finishes = finishes_of(*done);
    ring_.scheduler.on_result(*done, micros{0});
    // What only releases was answered long ago, and is booked at once.
    while (!flight_.empty() && flight_.front()->releases_only()) {
      ring_.scheduler.on_result(*flight_.front(), micros{0});
      flight_.pop_front();
    }
  }
  void at_boundary() {
    for (const action& a : std::exchange(waiting_, {})) {
      if (a.what == action::kind::submit) ring_.scheduler.on_submit(scripted(a.id), micros{0});
      if (a.what == action::kind::cancel) ring_.scheduler.on_cancel(request_id{a.id}, micros{0});
      if (a.what == action::kind::drain) ring_.scheduler.on_drain(micros{0});
    }
    while (step_ptr plan = ring_.advance()) {
      flight_.push_back(std::move(plan));
      if (flight_.size() == 1 && flight_.front()->releases_only()) complete();
    }
  }

  decision_log log_;
  ring ring_;
  std::vector<action> waiting_;
  std::deque<step_ptr> flight_;
};

}  // namespace

TEST_CASE("actors: the ring of actors decides what the ring of plain calls decides") {
  engine_config config = small();
  config.num_blocks = block_count{14};
  config.policy = GENERATE(policy_kind::continuous, policy_kind::prefill_first,
                           policy_kind::reserve, policy_kind::static_batch);
  config.static_max_wait = micros{0};
  config.run_ahead = GENERATE(0, 1);
  config.enable_prefix_caching = GENERATE(true, false);
  payload_keeper by_actors;
  payload_keeper by_calls;
  scene s{config, &by_actors};
  plain_ring plain{config, by_calls};
  std::vector<action> actions = script();
  while (!actions.empty()) {
    for (const action& a : std::exchange(actions, {})) {
      plain.play(a);
      if (a.what == action::kind::submit) s.submit(scripted(a.id));
      if (a.what == action::kind::cancel) s.cancel(a.id);
      if (a.what == action::kind::drain) s.drain();
      if (a.what == action::kind::answer && !s.ring.held->empty()) {
        s.answer(finishes_of(*s.ring.held->front()));
      }
      s.c.pump();
      REQUIRE(plain.idle() == s.ring.held->empty());
    }
    if (!plain.idle()) actions.assign(1, {});
  }
  s.check_rest();
  REQUIRE(by_actors.payloads.size() == by_calls.payloads.size());
  CHECK(by_actors.payloads.size() > 40);
  for (std::size_t i = 0; i < by_calls.payloads.size(); ++i) {
    INFO("record " << i);
    REQUIRE(by_actors.payloads[i] == by_calls.payloads[i]);
  }
}
