// Prefix hits, samples that share a prompt, and sliding windows, whole requests
// through the ring. Blocks hold 4 tokens.
#include "tests/support/catch.hpp"
#include "tests/support/fake_world.hpp"

using namespace octavo;
using namespace octavo::test;

namespace {

engine_config config_of(std::int32_t blocks) {
  engine_config config;
  config.block_size = token_count{4};
  config.num_blocks = block_count{blocks};
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = token_count{64};
  return config;
}

// Runs `first` and then `second`; the tokens that `second` found cached.
std::int32_t cached_after(const fake_request& first, const fake_request& second,
                          world_options options = {}) {
  fake_world world{config_of(40), options};
  world.submit(first);
  world.run();
  world.submit(second);
  world.run();
  world.check_end();
  return world.end_of(second.id).cached_tokens.raw();
}

std::int32_t used(const fake_world& world) {
  return world.statistics().blocks_used.raw();
}

// The ends of three samples, none of them twice.
void check_three_ends(fake_world& world, std::uint64_t id) {
  world.run();
  world.check_end();
  REQUIRE(world.ends(id).size() == 3);
  std::int32_t samples = 0;
  for (const finish_event& e : world.ends(id)) samples |= 1 << e.sample;
  CHECK(samples == 0b111);
  CHECK(world.ends(id).back().request_done);
}

}  // namespace

TEST_CASE("a prompt seen before is found, all but the block with its last token") {
  const fake_request one{.id = 1, .prompt = 16, .max_tokens = 2, .family = 1, .shared = 16};
  fake_request two = one;
  two.id = 2;
  CHECK(cached_after(one, two) == 12);  // 16 = 4 full blocks; one token must run
  two.prompt = 17;
  CHECK(cached_after(one, two) == 16);
  two.prompt = 30;
  two.shared = 9;
  CHECK(cached_after(one, two) == 8);
}

TEST_CASE("salt and adapter isolate, also where their texts are equal") {
  fake_request one{.id = 1, .prompt = 17, .max_tokens = 2, .family = 1, .shared = 17};
  one.adapter = "x";
  fake_request two = one;
  two.id = 2;
  CHECK(cached_after(one, two) == 16);
  two.adapter = "";
  two.salt = "x";
  CHECK(cached_after(one, two) == 0);
  two.salt = "";
  CHECK(cached_after(one, two) == 0);
  one = {.id = 1, .prompt = 17, .max_tokens = 2, .family = 1, .shared = 17};
  one.salt = "a";
  two.salt = "b";
  CHECK(cached_after(one, two) == 0);
}

TEST_CASE("generated blocks are found too where the executor names them") {
  const fake_request one{.id = 1, .prompt = 6, .max_tokens = 11};
  // Its text goes on as a prompt, as in the second turn of a conversation.
  fake_world world{config_of(40), {.token_ids = true, .output_keys = true}};
  world.submit(one);
  world.run();
  request_spec turn;
  turn.id = request_id{2};
  turn.prompt_tokens = token_count{20};
  auto tokens = std::make_shared<std::vector<token_id>>();
  block_key key = block_hasher{{7, 11}}.root({});
  for (std::int32_t p = 0; p < 20; ++p) {
    tokens->push_back(token_at(one, 0, p));
    if (p % 4 == 3) {
      key = block_hasher{{7, 11}}.chain(key, std::span{*tokens}.last(4));
      turn.keys.push_back(key);
    }
  }
  turn.prompt = tokens;
  world.engine.scheduler.on_submit(turn, micros{0});
  const step_ptr plan = world.engine.advance();
  REQUIRE(plan != nullptr);
  CHECK(plan->admissions.at(0).hits_count == 4);  // 16 of 17 computed; the last has no KV
}

TEST_CASE("a first block that generated tokens complete is found in its own cache scope alone") {
  decision_log log{"{}"};
  ring engine{config_of(40), log};
  const block_hasher hasher{{}};
  // Of 2 tokens, or of 9 that begin as the first request's text did.
  const auto hits_of = [&](std::uint64_t id, std::size_t tokens, const char* salt) {
    request_spec spec;
    spec.id = request_id{id};
    spec.prompt_tokens = token_count{static_cast<std::int32_t>(tokens)};
    spec.max_tokens = token_count{6};
    const auto prompt = std::make_shared<std::vector<token_id>>(tokens, 5);
    block_key key = hasher.root({.cache_salt = salt});
    spec.root = key;
    for (std::size_t at = 0; at + 4 <= tokens; at += 4) {
      spec.keys.push_back(key = hasher.chain(key, std::span{*prompt}.subspan(at, 4)));
    }
    spec.prompt = prompt;
    engine.scheduler.on_submit(spec, micros{0});
    std::uint32_t hits = 0;
    while (const step_ptr plan = engine.advance()) {
      for (const auto& a : plan->admissions) hits += a.hits_count;
      for (const auto& work : plan->work) {
        if (work.samples > 0) plan->result.tokens.push_back(5);
      }
      engine.scheduler.on_result(*plan, micros{0});
    }
    return hits;
  };
  CHECK(hits_of(1, 2, "tenant a") == 0);
  CHECK(hits_of(2, 5, "tenant b") == 0);
  CHECK(hits_of(3, 5, "") == 0);
  CHECK(hits_of(4, 5, "tenant a") == 1);
}

TEST_CASE("a forged collision of keys is no hit where tokens are known") {
  decision_log log{"{}"};
  ring engine{config_of(40), log};
  const auto run_one = [&](std::uint64_t id, token_id token) {
    request_spec spec;
    spec.id = request_id{id};
    spec.prompt_tokens = token_count{9};
    spec.prompt = std::make_shared<std::vector<token_id>>(9, token);
    spec.keys = {{1, 1}, {2, 2}};
    engine.scheduler.on_submit(spec, micros{0});
    std::uint32_t hits = 0;
    while (const step_ptr plan = engine.advance()) {
      for (const auto& a : plan->admissions) hits += a.hits_count;
      plan->result.tokens.assign(plan->work.size(), 5);
      engine.scheduler.on_result(*plan, micros{0});
    }
    return hits;
  };
  CHECK(run_one(1, 7) == 0);
  CHECK(run_one(2, 8) == 0);
  CHECK(run_one(3, 7) == 2);
}

TEST_CASE("a request that is tried again each step is counted once") {
  engine_config config = config_of(20);
  fake_world world{config};
  world.submit({.id = 1, .prompt = 4, .max_tokens = 60, .family = 1, .shared = 4});
  for (int i = 0; i < 10; ++i) world.complete();
  world.submit({.id = 2, .prompt = 72, .max_tokens = 2, .family = 1, .shared = 4});
  for (int i = 0; i < 40; ++i) world.complete();
  CHECK(world.ends(2).empty());
  CHECK(world.engine.blocks.statistics().query_tokens == 4);
  world.run();
  world.check_end();
  CHECK(world.engine.blocks.statistics().query_tokens == 76);
  CHECK(world.engine.blocks.statistics().hit_tokens <= 4);
}

TEST_CASE("samples share the prompt's full blocks and copy the partial one") {
  for (const bool caching : {true, false}) {
    engine_config config = config_of(40);
    config.enable_prefix_caching = caching;
    fake_world world{config};
    world.submit({.id = 1, .prompt = 10, .max_tokens = 4, .n = 3});
    CHECK(used(world) == 3);
    world.complete();
    // 2 full blocks once, the partial one three times.
    CHECK(used(world) == 5);
    REQUIRE(world.in_flight() != nullptr);
    CHECK(world.in_flight()->copies.size() == 2);
    CHECK(world.in_flight()->work.size() == 3);
    CHECK(world.statistics().kv_tokens == 8 + 3 * 3);
    check_three_ends(world, 1);
    for (std::uint16_t k = 0; k < 3; ++k) CHECK(world.text(1, k).size() == 4);
  }
}

TEST_CASE("samples whose copied block never came, because the step failed, end with it") {
  engine_config config = config_of(40);
  config.policy = policy_kind::prefill_first;
  fake_world world{config};
  world.submit({.id = 1, .prompt = 10, .max_tokens = 9, .n = 3});
  world.submit({.id = 2, .prompt = 5, .max_tokens = 2});
  world.complete();  // forks, and computes the prompt of request 2 alone
  REQUIRE(world.in_flight()->copies.size() == 2);
  REQUIRE(world.in_flight()->work.size() == 1);
  world.fail();
  check_three_ends(world, 1);
  CHECK(world.end_of(2).why == reason::finished_executor_failed);
  for (const finish_event& e : world.ends(1)) {
    CHECK(e.why == (e.sample == 0 ? reason::finished_length : reason::finished_executor_failed));
  }
}

TEST_CASE("a group takes one seat for each sample, before and after it has forked") {
  fake_world world{config_of(40)};  // 8 seats
  for (std::uint64_t id = 1; id <= 3; ++id) {
    world.submit({.id = id, .prompt = 6, .max_tokens = 9, .n = 3});
  }
  world.submit({.id = 4, .prompt = 6, .max_tokens = 9});
  CHECK(world.statistics().running == 1);
  world.complete();  // request 1 forks and request 2 gets in: 3 + 3 seats
  CHECK(world.statistics().running == 4);
  world.complete();
  CHECK(world.statistics().running == 6);  // two seats are too few for request 3
  CHECK(world.statistics().waiting == 2);
  world.cancel(2);
  world.complete();
  CHECK(world.statistics().running == 5);  // 1's three samples, requests 3 and 4
  world.run();
  world.check_end();
}

TEST_CASE("the output keys of a trace are those of sample 0, not of its siblings") {
  for (const auto policy : {policy_kind::continuous, policy_kind::reserve}) {
    engine_config config = config_of(60);
    config.policy = policy;
    fake_world world{config, {.text_keys = true}};
    world.submit({.id = 1, .prompt = 6, .max_tokens = 12, .n = 2});
    world.run();
    // The next turn of sample 0's conversation finds its own blocks; the fake
    // memory would notice those of sample 1.
    world.submit({.id = 2, .prompt = 6, .max_tokens = 12, .n = 2});
    world.run();
    world.check_end();
    CHECK(world.engine.prefixes.size() > 4);
  }
}

TEST_CASE("a prompt of whole blocks is shared without a copy") {
  fake_world world{config_of(40)};
  world.submit({.id = 1, .prompt = 8, .max_tokens = 4, .n = 3});
  world.complete();
  CHECK(world.in_flight()->copies.empty());
  CHECK(used(world) == 2 + 3);
  check_three_ends(world, 1);
}

TEST_CASE("a sample that finds no block to copy to waits and computes its prompt itself") {
  for (const bool caching : {true, false}) {
    engine_config config = config_of(4);
    config.enable_prefix_caching = caching;
    fake_world world{config};
    world.submit({.id = 1, .prompt = 10, .max_tokens = 4, .n = 3});
    world.complete();
    check_three_ends(world, 1);
    for (const finish_event& e : world.ends(1)) CHECK(e.why == reason::finished_length);
  }
}

TEST_CASE("of a group the last sample is preempted first, and all end") {
  for (const bool caching : {true, false}) {
    engine_config config = config_of(6);
    config.enable_prefix_caching = caching;
    record_keeper keeper;
    fake_world world{config};
    world.engine.scheduler.observe(keeper);
    world.submit({.id = 1, .prompt = 10, .max_tokens = 8, .n = 3});
    check_three_ends(world, 1);
    const auto preempting = std::ranges::find_if(
        keeper.records, [](const decision_record& r) { return !r.preempted.empty(); });
    REQUIRE(preempting != keeper.records.end());
    CHECK(preempting->preempted[0].victim == sequence_name{request_id{1}, 2});
  }
}

TEST_CASE("a group preempted before its prompt is done starts again as a group") {
  engine_config config = config_of(8);
  config.max_num_batched_tokens = token_count{8};
  config.scheduler_reserve_full_isl = false;
  fake_world world{config};
  world.submit({.id = 9, .prompt = 7, .max_tokens = 20});
  world.complete();
  world.submit({.id = 1, .prompt = 26, .max_tokens = 2, .n = 3});
  check_three_ends(world, 1);
  CHECK(world.statistics().preemptions > 0);
}

TEST_CASE("sample 0 may end with its first token while the others live") {
  fake_world world{config_of(40)};
  world.submit({.id = 1, .prompt = 10, .max_tokens = 4, .n = 3});
  world.complete(0b001);
  REQUIRE(world.ends(1).size() == 1);
  CHECK(world.ends(1)[0].sample == 0);
  CHECK_FALSE(world.ends(1)[0].request_done);
  check_three_ends(world, 1);
  CHECK(world.statistics().completed == 1);
}

TEST_CASE("all samples may end with their first token") {
  fake_world world{config_of(40)};
  world.submit({.id = 1, .prompt = 10, .max_tokens = 1, .n = 3});
  check_three_ends(world, 1);
}

TEST_CASE("a cancel ends the whole group") {
  fake_world world{config_of(40)};
  world.submit({.id = 1, .prompt = 10, .max_tokens = 9, .n = 3});
  world.complete();
  world.cancel(1);
  check_three_ends(world, 1);
  for (const finish_event& e : world.ends(1)) CHECK(e.why == reason::finished_cancelled);
  CHECK(world.statistics().cancelled == 1);
}

TEST_CASE("a group cancelled before its prompt is done ends once and forks nothing") {
  for (const std::int32_t run_ahead : {0, 1}) {
    engine_config config = config_of(40);
    config.run_ahead = run_ahead;
    config.max_num_batched_tokens = token_count{8};
    fake_world world{config};
    world.submit({.id = 1, .prompt = 14, .max_tokens = 9, .n = 3});
    world.cancel(1);
    world.run();
    world.check_end();
    CHECK(world.end_of(1).request_done);
    CHECK(world.text(1).empty());
  }
}

TEST_CASE("a sliding window holds a bounded number of blocks, whole layers all of them") {
  engine_config config = config_of(40);
  config.enable_prefix_caching = false;
  config.kv_groups = {kv_group{}, kv_group{token_count{8}}};
  fake_world world{config};
  world.submit({.id = 1, .prompt = 10, .max_tokens = 31});
  CHECK(used(world) == 3 + 3);
  std::vector<std::int32_t> seen;
  for (std::int32_t position = 10; position < 40; ++position) {
    world.complete();  // now the step of `position` is planned
    // It reads position - 7 .. position in the window.
    const std::int32_t whole = position / 4 + 1;
    const std::int32_t near = position / 4 + 1 - (position - 7) / 4;
    CAPTURE(position);
    CHECK(used(world) == whole + near);
  }
  world.run();
  world.check_end();
  CHECK(world.end_of(1).output_tokens == token_count{31});
}

TEST_CASE("a windowed model alone takes a prompt far longer than the pool") {
  engine_config config = config_of(6);
  config.enable_prefix_caching = false;
  config.max_num_batched_tokens = token_count{8};
  config.kv_groups = {kv_group{token_count{8}}};
  fake_world world{config};
  world.submit({.id = 1, .prompt = 100, .max_tokens = 10});
  world.run();
  world.check_end();
  CHECK(world.end_of(1).why == reason::finished_length);
}

TEST_CASE("a head that lacks memory is asked about alone until memory has grown") {
  decision_log log{"{}"};
  ring engine{config_of(10), log};
  const auto submit = [&](std::uint64_t id, std::int32_t prompt, std::int32_t max_tokens) {
    request_spec spec;
    spec.id = request_id{id};
    spec.prompt_tokens = token_count{prompt};
    spec.max_tokens = token_count{max_tokens};
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(prompt / 4); ++i) {
      spec.keys.push_back({id, i});
    }
    engine.scheduler.on_submit(spec, micros{0});
  };
  submit(1, 5, 6);
  submit(2, 36, 2);  // 9 blocks, and request 1 holds 2 or more of 10
  for (std::uint64_t id = 3; id <= 6; ++id) submit(id, 5, 2);
  std::vector<std::size_t> asked;
  while (engine.scheduler.wants_plan()) {
    step plan;
    match_batch question;
    const bool asks = engine.scheduler.begin_plan(plan, question);
    asked.push_back(question.candidates.size());
    engine.prefixes.answer(question);
    engine.blocks.confirm(question);
    if (!engine.scheduler.finish_plan(plan, asks ? &question : nullptr)) continue;
    engine.blocks.commit(plan);
    engine.scheduler.on_result(plan, micros{0});
  }
  // Request 1 takes six steps; then request 2 gets in and takes the memory.
  REQUIRE(asked.size() > 7);
  CHECK(std::vector(asked.begin(), asked.begin() + 7) ==
        std::vector<std::size_t>{6, 1, 1, 1, 1, 1, 5});
  CHECK(engine.scheduler.idle());
}

TEST_CASE("a crowd is looked at in growing numbers, and the first left out is told so") {
  engine_config config = config_of(400);
  config.max_num_seqs = 100;
  config.max_num_batched_tokens = token_count{1000};
  record_keeper keeper;
  fake_world world{config};
  world.submit({.id = 1, .prompt = 3, .max_tokens = 9});
  world.engine.scheduler.observe(keeper);
  for (std::uint64_t id = 2; id <= 90; ++id) world.submit({.id = id, .prompt = 3, .max_tokens = 9});
  world.run();
  world.check_end();
  REQUIRE(keeper.records.size() > 2);
  CHECK(keeper.records[0].admitted.size() == 16 + 2);
  CHECK(keeper.records[1].admitted.size() == 16 + 2 * 18);
  REQUIRE(keeper.records[0].held.size() == 1);
  CHECK(keeper.records[0].held[0] == held_record{{request_id{20}, 0}, reason::behind_head, 19, 0});
}
