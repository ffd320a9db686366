// Profiles: reading, the mapping of steps to tables by hand, and files to refuse.
#include "sim/cost/profile.hpp"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "sim/cost/cost_source.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Two layers; dense 10 us a token-independent call plus 1 us a token; head 5 us.
const std::string small = R"({"format":"octavo.profile/1","provenance":"made by hand",
 "model":"toy","gpu":"none","tp":1,"layers":2,"hidden_size":64,
 "dense":[{"name":"linear","calls":2,"tokens":[1,101],"us":[11,111]}],
 "per_sequence":[{"name":"head","calls":1,"sequences":[1,11],"us":[5,15]}],
 "attention_decode":{"sequences":[1,11],"context":[100,200],"us":[1,2,11,22]},
 "attention_prefill":{"tokens":[10,20],"context":[0,100],"us":[4,8,10,20]}})";

std::string with_mixed() {
  std::string text = small;
  text.insert(text.rfind('}'),
              R"(,"attention_mixed":{"prefill_tokens":[10,20],"prefill_context":[0],
   "decode_sequences":[1],"decode_context":[100,200],"us":[30,40,50,60]},
   "skew":{"sequences":[1],"alpha_decode":[0.5],"alpha_mixed":[0.1]},
   "host":{"step_us":100,"sequence_us":3})");
  return text;
}

profile_cost cost_of(const std::string& text) {
  return profile_cost{parse_profile(text, "test")};
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = small;
  text.replace(text.find(from), from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("a decode step is dense, head and attention by mean context") {
  // 6 tokens: 2 calls x (11 + 5); head 5 + 5; attention at (6, 150) is the middle
  // of both axes: (1 + 2 + 11 + 22) / 4 = 9, in 2 layers.
  const profile_cost cost = cost_of(small);
  const step_shape shape{.decode_sequences = 6,
                         .decode_context = 900,
                         .decode_context_max = 400,
                         .sampled_sequences = 6};
  CHECK(cost.device_time_us(shape) == Catch::Approx(32 + 10 + 18));
  CHECK(cost.host_time_us(shape) == 0);
  CHECK(cost.device_time_us({}) == 0);
}

TEST_CASE("several chunks share one floor") {
  // (20, 100) costs 20 and is the dearest; (10, 100) adds 8 less the floor of 4.
  const profile_cost cost = cost_of(small);
  const std::array chunks{prefill_chunk{10, 100}, prefill_chunk{20, 100}};
  const step_shape shape{.chunks = chunks, .prefill_tokens = 30};
  CHECK(cost.device_time_us(shape) == Catch::Approx(2 * 40 + 2 * 24));
}

TEST_CASE("a step with both kinds uses the mixed table where there is one") {
  const prefill_chunk chunk{10, 0};
  const step_shape shape{.chunks = {&chunk, 1},
                         .prefill_tokens = 10,
                         .decode_sequences = 1,
                         .decode_context = 100,
                         .decode_context_max = 100,
                         .sampled_sequences = 1};
  // 11 tokens: 2 x 21; head 5. Without a mixed table: decode 1 and prefill 4.
  CHECK(cost_of(small).device_time_us(shape) == Catch::Approx(42 + 5 + 2 * (1 + 4)));
  CHECK(cost_of(with_mixed()).device_time_us(shape) == Catch::Approx(42 + 5 + 2 * 30));
}

TEST_CASE("uneven contexts add a share of the way to the longest") {
  const profile_cost cost = cost_of(with_mixed());
  step_shape shape{.decode_sequences = 1,
                   .decode_context = 100,
                   .decode_context_max = 200,
                   .sampled_sequences = 0};
  // Between 1 at the mean of 100 and 2 at 200, half.
  CHECK(cost.device_time_us(shape) == Catch::Approx(2 * 11 + 2 * 1.5));
  const prefill_chunk chunk{10, 0};
  shape.chunks = {&chunk, 1};
  shape.prefill_tokens = 10;
  CHECK(cost.device_time_us(shape) == Catch::Approx(2 * 21 + 2 * 31));
  CHECK(cost.host_time_us(shape) == 100 + 3 * 2);
}

TEST_CASE("a profile survives being written and read") {
  const profile first = parse_profile(with_mixed(), "test");
  const profile second = parse_profile(to_json(first), "again");
  CHECK(to_json(second) == to_json(first));
  CHECK(second.attention_mixed.values() == first.attention_mixed.values());
  CHECK(second.provenance == "made by hand");
  CHECK_THAT(profile_cost{second}.source(),
             ContainsSubstring("profile (toy on none, tp 1: made by hand)"));
}

TEST_CASE("a profile prices only the model, formats and tp that it was measured for") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("octavo-profile-test-" + std::to_string(::getpid()) + ".json");
  std::ofstream{path} << small;
  cost_options options;
  options.config = model::parse_config(R"({"model_type":"llama","hidden_size":64,
    "num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":128,"vocab_size":100,
    "max_position_embeddings":64})",
                                       "test");
  options.profile_path = path.string();
  CHECK_THAT(make_cost_model(options)->source(), ContainsSubstring("toy on none"));
  options.host_step_us = 7;
  CHECK(make_cost_model(options)->host_time_us({}) == 7);
  options.weights = model::weight_format::int4;
  CHECK_THROWS_WITH(make_cost_model(options),
                    ContainsSubstring("measured with weights fp16, but the run has int4"));
  options.weights = model::weight_format::fp16;
  options.tp = 2;
  CHECK_THROWS_WITH(make_cost_model(options), ContainsSubstring("tensor parallel size 1"));
  options.tp = 1;
  options.config.layers = 3;
  CHECK_THROWS_WITH(make_cost_model(options), ContainsSubstring("layers 2, but the run has 3"));
  std::filesystem::remove(path);
}

TEST_CASE("a profile that cannot be used is refused by field") {
  const auto message = [](const std::string& text, const std::string& part) {
    CHECK_THROWS_AS(parse_profile(text, "p.json"), input_error);
    CHECK_THROWS_WITH(parse_profile(text, "p.json"), ContainsSubstring(part));
  };
  message("{", "p.json: a JSON object");
  message(with("octavo.profile/1", "octavo.profile/9"), "\"format\" must be");
  message(with("\"layers\":2", "\"layers\":0"), "\"layers\" must be a whole number");
  message(with("[1,101]", "[101,1]"), "\"tokens\" must rise");
  message(with("[1,101]", "[1,1]"), "\"tokens\" must rise");
  message(with("[11,111]", "[11]"), "holds 1 numbers where its axes need 2");
  message(with("[11,111]", "[11,-1]"), "negative");
  message(with("[1,2,11,22]", "[1,2,11,\"x\"]"), "\"us\" holds \"x\"");
  message(with("attention_decode", "attention_dance"), "\"attention_decode\" must be an object");
  CHECK_THROWS_AS(load_profile("no-such-file.json"), input_error);
  profile bare;
  CHECK_THROWS_AS(profile_cost{bare}, input_error);
}
