// Records come back field by field; damaged ones are refused, never trusted.
#include "core/decision_log.hpp"

#include <map>

#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

struct keeper final : log_sink {
  void on_entry(std::span<const std::byte> payload, const hash128& chain) override {
    payloads.emplace_back(payload.begin(), payload.end());
    chains.push_back(chain);
  }
  std::vector<std::vector<std::byte>> payloads;
  std::vector<hash128> chains;
};

request_spec sample_spec() {
  request_spec spec;
  spec.id = request_id{0xfedcba9876543210ULL};
  spec.prompt_tokens = token_count{374};
  spec.max_tokens = token_count{200};
  spec.priority = -5;
  spec.n = 3;
  spec.keys = {{1, 2}, {0xffffffffffffffffULL, 4}};
  return spec;
}

step sample_result() {
  step done;
  done.id = step_id{41};
  done.result.status = step_status::failed;
  done.result.finishes = {{2, 1, finish_kind::stop_string}, {3, 0, finish_kind::eos}};
  done.result.output_keys = {{7, {8, 9}}};
  return done;
}

decision_record sample_record() {
  decision_record r;
  r.step = step_id{42};
  r.now = micros{123'456'789};
  r.budget = token_count{512};
  r.ran = {{{request_id{9}, 2}, token_count{16}, token_count{3}, false},
           {{request_id{4}, 0}, token_count{1}, token_count{0}, true}};
  r.admitted = {{{request_id{9}, 2}, reason::prefix_hit, token_count{32}}};
  r.preempted = {{{request_id{5}, 1}, {request_id{4}, 0}}};
  r.finished = {{{request_id{6}, 0}, reason::rejected_too_long, 5000, 4096}};
  r.held = {{{request_id{7}, 0}, reason::no_free_blocks, 12, -3}};
  r.behind = 17;
  r.free = block_count{100};
  r.used = block_count{28};
  return r;
}

// One record with every kind of input.
keeper recorded() {
  keeper kept;
  decision_log log{"{}"};
  log.set_sink(&kept);
  log.add_submit(sample_spec(), micros{10});
  log.add_cancel(request_id{77}, micros{5});  // stamps may run backwards
  log.add_drain(micros{20});
  log.add_wake(micros{20});
  log.add_result(sample_result(), micros{30});
  log.commit(sample_record());
  return kept;
}

std::vector<ran_record> two_decodes() {
  return {{{request_id{1}, 0}, token_count{1}, {}, true},
          {{request_id{2}, 0}, token_count{1}, {}, true}};
}

}  // namespace

TEST_CASE("every field of inputs and decisions comes back") {
  const keeper kept = recorded();
  REQUIRE(kept.payloads.size() == 1);
  decision_log_decoder decoder;
  const logged_step read = decoder.decode(kept.payloads[0]);
  REQUIRE(read.inputs.size() == 5);

  logged_input submit{input_kind::submit, micros{10}, sample_spec(), {}, {}, {}};
  logged_input cancel{input_kind::cancel, micros{5}, {}, request_id{77}, {}, {}};
  logged_input drain{input_kind::drain, micros{20}, {}, {}, {}, {}};
  logged_input wake{input_kind::wake, micros{20}, {}, {}, {}, {}};
  logged_input result{input_kind::result, micros{30}, {}, {}, step_id{41}, sample_result().result};
  CHECK(read.inputs[0] == submit);
  CHECK(read.inputs[1] == cancel);
  CHECK(read.inputs[2] == drain);
  CHECK(read.inputs[3] == wake);
  CHECK(read.inputs[4] == result);

  decision_record expected = sample_record();
  expected.inputs = {
      {input_kind::submit, micros{10}, sample_spec().id, token_count{374}, token_count{200}, {}},
      {input_kind::cancel, micros{5}, request_id{77}, {}, {}, {}},
      {input_kind::drain, micros{20}, {}, {}, {}, {}},
      {input_kind::wake, micros{20}, {}, {}, {}, {}},
      {input_kind::result, micros{30}, {}, {}, {}, step_id{41}}};
  CHECK(read.decisions == expected);
}

TEST_CASE("a batch that decodes on is stored once and comes back each time") {
  keeper kept;
  decision_log log{"{}"};
  log.set_sink(&kept);
  decision_record record;
  record.ran = two_decodes();
  for (std::uint64_t i = 1; i <= 3; ++i) {
    record.step = step_id{i};
    log.commit(record);
  }
  CHECK(kept.payloads[1].size() < kept.payloads[0].size());
  record.ran[1].who.request = request_id{3};  // another batch of the same size
  log.commit(record);
  decision_log_decoder decoder;
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(decoder.decode(kept.payloads[i]).decisions.ran == two_decodes());
  }
  CHECK(decoder.decode(kept.payloads[3]).decisions.ran == record.ran);
}

TEST_CASE("the chain changes with the header and with any byte of any record") {
  const keeper kept = recorded();
  const hash128 start = chain_of_header("{}");
  CHECK(start != chain_of_header("{ }"));
  CHECK(kept.chains[0] == chain_next(start, kept.payloads[0]));
  for (std::size_t i = 0; i < kept.payloads[0].size(); ++i) {
    auto damaged = kept.payloads[0];
    damaged[i] ^= std::byte{1};
    CHECK(chain_next(start, damaged) != kept.chains[0]);
  }
}

TEST_CASE("a record cut short anywhere, or with a tail, is refused") {
  const auto payload = recorded().payloads[0];
  for (std::size_t size = 0; size < payload.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(decision_log_decoder{}.decode(std::span{payload}.first(size)),
                    std::out_of_range);
  }
  auto longer = payload;
  longer.push_back(std::byte{0});
  CHECK_THROWS_AS(decision_log_decoder{}.decode(longer), std::out_of_range);
}

TEST_CASE("a record with any bytes changed is decoded or refused, never a crash") {
  const auto payload = recorded().payloads[0];
  std::map<bool, int> outcomes;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      auto damaged = payload;
      damaged[i] = static_cast<std::byte>(value);
      if (value % 3 == 0) damaged[(i * 7 + 3) % damaged.size()] ^= std::byte{0x80};
      bool refused = false;
      try {
        (void)decision_log_decoder{}.decode(damaged);
      } catch (const std::out_of_range&) {
        refused = true;
      }
      ++outcomes[refused];
    }
  }
  CHECK(outcomes[true] > 0);
  CHECK(outcomes[false] > 0);
}

TEST_CASE("unknown codes are refused") {
  const auto refused = [](std::vector<int> values) {
    byte_writer out;
    for (const int v : values) out.put(static_cast<std::uint64_t>(v));
    try {
      (void)decision_log_decoder{}.decode(out.bytes());
    } catch (const std::out_of_range& error) {
      return std::string{error.what()};
    }
    return std::string{"accepted"};
  };
  // End of inputs, step, time, budget, then how those that ran are coded.
  CHECK(refused({0, 1, 0, 10, 1, 0, 0, 0, 0, 0, 3, 4}) == "accepted");
  CHECK(refused({0, 1, 0, 10, 2, 0, 0, 0, 0, 0, 3, 4}).find("coding") != std::string::npos);
  CHECK(refused({6}).find("kind of input") != std::string::npos);
  CHECK(refused({0, 1, 0, 10, 1, 1, 5, 0, 200, 0, 0}).find("reason") != std::string::npos);
  CHECK(refused({5, 0, 1, 0, 1, 0, 0, 256, 0, 0, 0}).find("finish") != std::string::npos);
}

TEST_CASE("a disabled log encodes nothing and keeps its chain") {
  decision_log log{"{}"};
  log.disable();
  log.add_submit(sample_spec(), micros{1});
  log.commit(sample_record());
  CHECK(log.records() == 0);
  CHECK(log.chain() == chain_of_header("{}"));
}
