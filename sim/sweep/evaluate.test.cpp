// Searches: the capacity that is found is met, and two percent more is not; the
// fleet that is found is the smallest.
#include "sim/sweep/evaluate.hpp"

#include "core/error.hpp"
#include "sim/cli/run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sim_world.hpp"
#include "traces/synth.hpp"

using namespace octavo;
using sim::evaluation;
using sim::sim_options;

namespace {

using trace_ptr = std::shared_ptr<const traces::trace>;

// Ten tokens a request and 10 ms steps: eight seats serve 80 requests a second.
trace_ptr steady_trace(double rate_rps) {
  traces::synth_options o;
  o.requests = 600;
  o.rate_rps = rate_rps;
  o.prompt = {50, 0};
  o.output = {10, 0};
  return std::make_shared<traces::trace>(synthesize(o));
}

sim_options eight_seats() {
  sim_options o;
  o.step_time = "10ms";
  o.num_gpu_blocks_override = 1000;
  o.max_num_seqs = 8;
  o.slo_ttft = "200ms";
  return o;
}

bool meets(sim_options options, const trace_ptr& trace, double scale, std::int64_t replicas) {
  options.rate_scale = scale;
  options.replicas = replicas;
  options.find_capacity = false;
  options.find_min_gpus = false;
  return evaluate(options, trace).summary.meets_objectives;
}

void check_bracket(const sim_options& options, const trace_ptr& trace) {
  const evaluation found = evaluate(options, trace);
  REQUIRE(found.run);
  CHECK(found.summary.meets_objectives);
  CHECK_FALSE(found.capacity_is_bound);
  CHECK(meets(options, trace, found.capacity_scale, 1));
  CHECK_FALSE(meets(options, trace, found.capacity_scale * 1.02, 1));
  CHECK(found.capacity_rps == Catch::Approx(found.capacity_scale * sim::traced_rate(*trace, 0)));
  CHECK(found.capacity_rps < 80);  // no search can find more than can be served
  CHECK(found.capacity_rps > 40);
  CHECK(found.runs < 30);
}

}  // namespace

TEST_CASE("a trace's rate is its requests over the last arrival") {
  auto t = test::trace_of(
      {test::request_at(0, 1, 1), test::request_at(1, 1, 1), test::request_at(4, 1, 1)});
  CHECK(sim::traced_rate(t, 0) == 0.75);
  CHECK(sim::traced_rate(t, 2) == 2);
  CHECK(sim::traced_rate(t, 99) == 0.75);
}

TEST_CASE("capacity is bracketed from below and from above") {
  sim_options o = eight_seats();
  o.find_capacity = true;
  check_bracket(o, steady_trace(5));    // far below: the search goes up
  check_bracket(o, steady_trace(600));  // far above: it goes down
}

TEST_CASE("capacity starts from the rate that is asked for, whatever that is") {
  sim_options o = eight_seats();
  o.find_capacity = true;
  o.rate_scale = 300;
  const auto slow = steady_trace(0.01);
  const evaluation found = evaluate(o, slow);
  CHECK(found.summary.meets_objectives);
  CHECK(found.capacity_is_bound);
  CHECK(found.capacity_scale >= 256);
}

TEST_CASE("where no rate will do, the capacity is 0 and the run says why") {
  sim_options o = eight_seats();
  o.find_capacity = true;
  o.slo_ttft = "5ms";  // less than one step
  const evaluation found = evaluate(o, steady_trace(5));
  CHECK(found.capacity_scale == 0);
  CHECK(found.capacity_rps == 0);
  CHECK_FALSE(found.summary.meets_objectives);
}

TEST_CASE("a capacity needs a rate: a closed loop and a trace of one moment are refused") {
  sim_options o = eight_seats();
  o.find_capacity = true;
  const auto burst = std::make_shared<traces::trace>(test::trace_of({test::request_at(0, 1, 1)}));
  CHECK_THROWS_AS(evaluate(o, burst), input_error);
  o.concurrency = 4;
  CHECK_THROWS_AS(evaluate(o, steady_trace(5)), input_error);
}

TEST_CASE("the fewest replicas meet the objectives, and one less does not") {
  sim_options o = eight_seats();
  o.find_min_gpus = true;
  const auto trace = steady_trace(420);  // four replicas serve 320 a second
  const evaluation found = evaluate(o, trace);
  REQUIRE(found.run);
  const std::int64_t replicas = found.run->simulation.replicas;
  CHECK(found.summary.meets_objectives);
  CHECK(replicas > 4);
  CHECK(meets(o, trace, 1, replicas));
  CHECK_FALSE(meets(o, trace, 1, replicas - 1));
}

TEST_CASE("one replica that is enough is the answer, and 64 that are not are none") {
  sim_options o = eight_seats();
  o.find_min_gpus = true;
  CHECK(evaluate(o, steady_trace(5)).run->simulation.replicas == 1);
  o.slo_ttft = "5ms";
  CHECK_FALSE(evaluate(o, steady_trace(5)).summary.meets_objectives);
}

TEST_CASE("what is infeasible is an answer, bad input an error") {
  sim_options o;
  o.model = "llama-3.1-70b";
  o.gpu = "h100";
  const evaluation found = evaluate(o, steady_trace(5));
  CHECK_FALSE(found.run);
  CHECK_THAT(found.problem, Catch::Matchers::ContainsSubstring("weights"));
  o.policy = "greedy";
  CHECK_THROWS_AS(evaluate(o, steady_trace(5)), input_error);
}
