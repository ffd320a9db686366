// Around the decoder, by hand: a step's tokens come after the next step was followed.
#include "model/generation/generations.hpp"

#include "model/generation/step_batch.hpp"
#include "model/tokenizer/byte_tokenizer.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;

namespace {

/// Admits `tokens`, all prompt, to a slot and computes them.
step admission(std::uint32_t slot, std::uint64_t request, const std::vector<token_id>& tokens,
               std::uint16_t samples = 1) {
  step plan;
  admission_command command;
  command.slot = slot;
  command.request = request_id{request};
  command.query_tokens = command.prompt_tokens =
      token_count{static_cast<std::int32_t>(tokens.size())};
  command.end_tokens = token_count{100};
  plan.admissions.push_back(command);
  plan.admitted_tokens = tokens;
  sequence_work work;
  work.slot = slot;
  work.request = command.request;
  work.samples = samples;
  work.count = command.query_tokens;
  plan.work.push_back(work);
  plan.tokens = tokens;
  return plan;
}

/// Computes one token at `position`, not known to the planner.
step decode(std::uint32_t slot, std::int32_t position) {
  step plan;
  sequence_work work;
  work.slot = slot;
  work.samples = 1;
  work.first_position = token_count{position};
  work.count = token_count{1};
  work.decode = true;
  plan.work.push_back(work);
  plan.tokens = {unknown_token};
  return plan;
}

generations bytes() {
  return {byte_tokenizer(), {kv_group{}}, {}};
}

std::vector<sampled_token> letters(const std::string& text) {
  std::vector<sampled_token> chosen;
  for (const char c : text) chosen.push_back({c, 0, {}});
  return chosen;
}

}  // namespace

TEST_CASE("a step is followed before the tokens of the one before it are known") {
  generations all = bytes();
  step first = admission(0, 1, {'a', 'b', 'c'});
  step second = decode(0, 3);
  std::vector<wanted_token> of_first;
  std::vector<wanted_token> of_second;
  all.follow(first);
  all.expect(first, of_first);
  all.follow(second);
  CHECK(batch_of(second, all.slots()).tokens == std::vector{unknown_token});
  all.expect(second, of_second);
  REQUIRE(of_second.size() == 1);
  CHECK(of_second[0].position == 4);

  auto chosen = letters("d");
  all.take(first, of_first, chosen);
  CHECK(first.result.text == "d");
  const sampling_state state = all.state(second, of_second[0]);
  CHECK(std::vector(state.prompt.begin(), state.prompt.end()) ==
        std::vector<token_id>{'a', 'b', 'c'});
  CHECK(std::vector(state.output.begin(), state.output.end()) == std::vector<token_id>{'d'});
  chosen = letters("e");
  all.take(second, of_second, chosen);
  CHECK(second.result.tokens == std::vector<token_id>{'e'});
  CHECK(all.slots().at(0).tokens == std::vector<token_id>{'a', 'b', 'c', 'd', 'e'});
}

TEST_CASE("a token reaches its sequence, though another has its slot") {
  generations all = bytes();
  step first = admission(0, 1, {'a', 'b'});
  step second = admission(0, 2, {'x', 'y', 'z'});
  std::vector<wanted_token> of_first;
  std::vector<wanted_token> of_second;
  all.follow(first);
  all.expect(first, of_first);
  all.follow(second);
  all.expect(second, of_second);
  auto chosen = letters("c");
  all.take(first, of_first, chosen);
  CHECK(first.result.text == "c");
  CHECK(of_first[0].sequence->tokens == std::vector<token_id>{'a', 'b', 'c'});
  chosen = letters("!");
  all.take(second, of_second, chosen);
  CHECK(second.result.text == "!");
  CHECK(all.slots().at(0).tokens == std::vector<token_id>{'x', 'y', 'z', '!'});
}

TEST_CASE("samples that start from one prompt have texts of their own") {
  generations all = bytes();
  step plan = admission(0, 1, {'a', 'b'}, 3);
  std::vector<wanted_token> wanted;
  all.follow(plan);
  all.expect(plan, wanted);
  REQUIRE(wanted.size() == 3);
  // The first half of a character is no text yet, whatever other samples say.
  auto chosen = letters("cd");
  chosen.insert(chosen.begin(), {0xC3, 0, {}});
  all.take(plan, wanted, chosen);
  CHECK(plan.result.text == "cd");
  CHECK(plan.result.text_ends == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(all.slots().at(0).tokens == std::vector<token_id>{'a', 'b', 0xC3});
}
