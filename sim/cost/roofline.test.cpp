// Steps priced by the roofline: a known operating point, order, refusals.
#include "sim/cost/roofline.hpp"

#include <array>

#include "core/error.hpp"
#include "sim/catalogue/catalogue.hpp"
#include "sim/cost/constant.hpp"
#include "sim/cost/cost_source.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;
using Catch::Matchers::ContainsSubstring;

namespace {

roofline_cost make(const std::string& model_name, const std::string& gpu, int tp = 1,
                   model::weight_format weights = model::weight_format::fp16) {
  return roofline_cost{
      {.config = find_model(model_name), .gpu = find_gpu(gpu), .tp = tp, .weights = weights}};
}

step_shape decodes(std::int64_t count, std::int64_t context) {
  return {.decode_sequences = count,
          .decode_context = count * context,
          .decode_context_max = context,
          .sampled_sequences = count};
}

}  // namespace

TEST_CASE("Llama-2-7B on an A100 decodes 28 sequences in 20 to 27 ms") {
  // Bytes alone: 13.5 GB of weights and 28 x 1,300 x 524,288 = 19.1 GB of KV at
  // 2,039 GB/s are 16 ms.
  const double us = make("llama-2-7b", "a100-80g").device_time_us(decodes(28, 1300));
  CHECK(us > 20'000);
  CHECK(us < 27'000);
}

TEST_CASE("the breakdown adds up to the price") {
  const roofline_cost cost = make("gemma-3-27b", "h100", 2);
  const std::array chunks{prefill_chunk{300, 0}, prefill_chunk{212, 4096}};
  step_shape shape = decodes(40, 3000);
  shape.chunks = chunks;
  shape.prefill_tokens = 512;
  const step_breakdown parts = cost.breakdown(shape);
  CHECK(parts.total() == Catch::Approx(cost.device_time_us(shape)));
  CHECK(parts.all_reduce > 0);
  CHECK(parts.attention_prefill > 0);
  CHECK(parts.attention_decode > 0);
  CHECK(parts.head > 0);
}

TEST_CASE("a step with more work never costs less") {
  const roofline_cost cost = make("llama-3.1-8b", "h100");
  double before = 0;
  for (std::int64_t count = 1; count <= 1500; count += 7) {
    const double us = cost.device_time_us(decodes(count, 800));
    REQUIRE(us >= before);
    before = us;
  }
  before = 0;
  for (std::int64_t tokens = 16; tokens <= 20000; tokens += 240) {
    const prefill_chunk chunk{tokens, 0};
    const double us = cost.device_time_us({.chunks = {&chunk, 1}, .prefill_tokens = tokens});
    REQUIRE(us >= before);
    before = us;
  }
  CHECK(cost.device_time_us({}) == 0);
}

TEST_CASE("prices are the same inside and outside the tables") {
  const roofline_cost cost = make("smollm2-135m", "l4");
  const double inside = cost.device_time_us(decodes(1024, 10));
  const double outside = cost.device_time_us(decodes(1025, 10));
  CHECK(outside >= inside);
  CHECK(outside < 1.05 * inside);
}

TEST_CASE("tensor parallelism, narrow weights and bandwidth make decoding faster") {
  const step_shape shape = decodes(16, 1000);
  const double base = make("llama-3.1-70b", "h100", 4).device_time_us(shape);
  CHECK(make("llama-3.1-70b", "h100", 8).device_time_us(shape) < base);
  CHECK(make("llama-3.1-70b", "h200", 4).device_time_us(shape) < base);
  CHECK(make("llama-3.1-70b", "a100-80g", 4).device_time_us(shape) > base);
  CHECK(make("llama-3.1-70b", "h100", 4, model::weight_format::fp8).device_time_us(shape) < base);
  CHECK(make("llama-3.1-70b", "h100", 4, model::weight_format::int4).device_time_us(shape) < base);
}

TEST_CASE("two collectives a layer cost at least their latency") {
  const double us = make("llama-3.1-70b", "h100", 8).breakdown(decodes(16, 1000)).all_reduce;
  CHECK(us > 2 * 80 * find_gpu("h100").link_latency_us);
  CHECK(us < 2 * 80 * 30);
  CHECK(make("llama-3.1-8b", "h100", 1).breakdown(decodes(16, 1000)).all_reduce == 0);
}

TEST_CASE("sliding layers stop growing at their window") {
  const roofline_cost cost = make("gemma-3-27b", "h100");
  const double at_8k = cost.breakdown(decodes(8, 8192)).attention_decode;
  const double at_16k = cost.breakdown(decodes(8, 16384)).attention_decode;
  const double at_32k = cost.breakdown(decodes(8, 32768)).attention_decode;
  // From 8K on only the 10 full layers grow: 8 x 8,192 x 8,192 bytes x 10 more at
  // 8K -> 16K is 5.4 GB, 1.6 ms at the peak.
  CHECK(at_16k - at_8k > 1600);
  CHECK(at_16k - at_8k < 2200);
  CHECK((at_32k - at_16k) / (at_16k - at_8k) == Catch::Approx(2).epsilon(0.05));
}

TEST_CASE("the factory refuses what cannot run and names its source") {
  cost_options options{.config = find_model("llama-3.1-8b"), .gpu = find_gpu("h100")};
  CHECK_THAT(make_cost_model(options)->source(), ContainsSubstring("roofline (h100, tp 1"));
  options.host_step_us = 100;
  options.host_sequence_us = 2;
  CHECK(make_cost_model(options)->host_time_us(decodes(10, 5)) == 120);
  options.step_time_us = 50'000;
  CHECK(make_cost_model(options)->device_time_us(decodes(3, 5)) == 50'000);
  CHECK_THAT(make_cost_model(options)->source(), ContainsSubstring("constant (50 ms a step)"));
  options.tp = 3;
  CHECK_THROWS_AS(make_cost_model(options), infeasible_error);
  options.tp = 1;
  options.step_time_us = 0;
  options.profile_path = "no-such-profile.json";
  CHECK_THROWS_AS(make_cost_model(options), input_error);
}

TEST_CASE("step times are read with their unit") {
  CHECK(parse_step_time_us("50ms") == 50'000);
  CHECK(parse_step_time_us("1.5s") == 1'500'000);
  CHECK(parse_step_time_us("800us") == 800);
  for (const char* bad : {"", "50", "ms", "-1ms", "0s", "5m", "nan s", "1e300s", "50 ms"}) {
    CHECK_THROWS_AS(parse_step_time_us(bad), input_error);
  }
}
