// The numbers of a report, each computed by hand.
#include "sim/report/summary.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/report_fixture.hpp"
#include "traces/synth.hpp"

using namespace octavo;
using Catch::Approx;
using sim::limiting_factor;
using sim::percentile;
using sim::run_summary;
using sim::simulation_outcome;
using test::completed_request;
using test::failed_request;
using test::run_with;

namespace {

run_summary summary_of(const sim::prepared_run& run, const simulation_outcome& outcome) {
  return summarize(run, outcome, limiting_factor::none);
}

simulation_outcome outcome_of(std::vector<sim::request_outcome> requests) {
  simulation_outcome o;
  o.requests = std::move(requests);
  o.submitted = std::ssize(o.requests);
  return o;
}

// 400 requests at a multiple of what four seats and 100 ms steps can take: ten
// tokens a request make 4 / (10 x 0.1 s) = 4 requests a second.
run_summary at_load(double load, std::uint32_t requests) {
  traces::synth_options o;
  o.requests = requests;
  o.arrivals = traces::arrival_kind::uniform;
  o.rate_rps = 4 * load;
  o.prompt = {50, 0};
  o.output = {10, 0};
  sim::prepared_run run;
  run.simulation = test::world_of(synthesize(o));
  run.simulation.engine.max_num_seqs = 4;
  return summary_of(run, simulate(run.simulation));
}

decision_record record_at(std::int64_t at_us, std::vector<held_record> held) {
  decision_record record;
  record.now = micros{at_us};
  record.held = std::move(held);
  return record;
}

}  // namespace

TEST_CASE("a percentile lies between the values next to it") {
  const std::vector<double> five{10, 20, 30, 40, 50};
  CHECK(percentile(five, 0) == 10);
  CHECK(percentile(five, 50) == 30);
  CHECK(percentile(five, 100) == 50);
  CHECK(percentile(five, 90) == Approx(46));  // rank 3.6
  CHECK(percentile(five, 99) == Approx(49.6));
  CHECK(percentile({7}, 99) == 7);
  CHECK(percentile({}, 50) == 0);
}

TEST_CASE("times follow their definitions, and only completed requests count") {
  const auto run = run_with(4);
  // TTFT 1 and 3; TPOT (3-1)/4 = 0.5, and none for the one with a single token; E2E 3 and 3.
  const auto s =
      summary_of(run, outcome_of({completed_request(0, 1, 3, 5), completed_request(1, 4, 4, 1),
                                  failed_request(0.5, reason::finished_cancelled),
                                  failed_request(0.6, reason::rejected_too_long)}));
  CHECK(s.ttft_s.mean == Approx(2));
  CHECK(s.ttft_s.p50 == Approx(2));
  CHECK(s.ttft_s.p90 == Approx(2.8));
  CHECK(s.ttft_s.max == Approx(3));
  CHECK(s.tpot_s.mean == Approx(0.5));
  CHECK(s.tpot_s.p99 == Approx(0.5));
  CHECK(s.e2e_s.mean == Approx(3));
  CHECK(s.requests.submitted == 4);
  CHECK(s.requests.completed == 2);
  CHECK(s.requests.cancelled == 1);
  CHECK(s.requests.rejected == 1);
  CHECK(s.requests.failed == 0);
  CHECK(s.duration_s == Approx(4));
  CHECK(s.requests_per_s == Approx(0.5));
  CHECK(s.output_tokens_per_s == Approx(1.5));
}

TEST_CASE("each end is counted in its kind, and the kinds add up") {
  const auto s =
      summary_of(run_with(7), outcome_of({failed_request(0, reason::finished_error),
                                          failed_request(0, reason::finished_executor_failed),
                                          failed_request(0, reason::rejected_queue_full),
                                          failed_request(0, reason::rejected_never_fits),
                                          failed_request(0, reason::finished_cancelled),
                                          sim::request_outcome{}, completed_request(0, 1, 1, 1)}));
  CHECK(s.requests.failed == 3);  // one never ended at all
  CHECK(s.requests.rejected == 2);
  CHECK(s.requests.cancelled == 1);
  CHECK(s.requests.completed == 1);
}

TEST_CASE("goodput counts requests that meet every objective") {
  auto run = run_with(4);
  run.objectives.ttft_us = 1.5e6;
  run.objectives.tpot_us = 0.4e6;
  const auto o = outcome_of({
      completed_request(0, 1, 4, 11),  // TTFT 1, TPOT 0.3: good
      completed_request(0, 1, 6, 11),  // TPOT 0.5: too slow
      completed_request(0, 2, 2, 1),   // TTFT 2: too late
      completed_request(9, 10, 10, 1)  // one token has no TPOT: good
  });
  const auto s = summary_of(run, o);
  CHECK(s.goodput_rps == Approx(2.0 / 10));
  CHECK_FALSE(s.meets_objectives);
  // TTFT sorted: 1 1 1 2; TPOT sorted: 0.3 0.5.
  run.objectives.percentile = 50;
  const auto median = summary_of(run, o);
  CHECK(median.ttft_at_objective_s == Approx(1));
  CHECK(median.tpot_at_objective_s == Approx(0.4));
  CHECK(median.meets_objectives);
  run.objectives = {};
  CHECK(summary_of(run, o).goodput_rps == Approx(0.4));
}

TEST_CASE("a request refused for lack of room, or failed, misses the objectives; others do not") {
  const auto meets = [](reason why) {
    return summary_of(run_with(2),
                      outcome_of({completed_request(0, 1, 1, 1), failed_request(0, why)}))
        .meets_objectives;
  };
  CHECK_FALSE(meets(reason::rejected_queue_full));
  CHECK_FALSE(meets(reason::rejected_never_fits));
  CHECK_FALSE(meets(reason::rejected_too_long));  // memory may have set the limit
  auto run = run_with(2);
  run.length_is_the_models = true;  // no more GPUs would help
  CHECK(summary_of(run, outcome_of({completed_request(0, 1, 1, 1),
                                    failed_request(0, reason::rejected_too_long)}))
            .meets_objectives);
  CHECK_FALSE(meets(reason::finished_executor_failed));
  CHECK(meets(reason::finished_cancelled));
  CHECK_FALSE(summary_of(run_with(1), outcome_of({failed_request(0, reason::finished_cancelled)}))
                  .meets_objectives);
}

TEST_CASE("cost: 7.20 USD an hour for 100 s that made 50,000 tokens is 4 USD a million") {
  auto run = run_with(1);
  run.price_usd_per_hour = 7.2;
  const auto s = summary_of(run, outcome_of({completed_request(0, 1, 100, 50'000)}));
  CHECK(s.usd_per_million_tokens == Approx(4));
  run.price_usd_per_hour = 0;
  CHECK(
      summary_of(run, outcome_of({completed_request(0, 1, 100, 50'000)})).usd_per_million_tokens ==
      0);
}

TEST_CASE("warm-up requests are in no number") {
  auto run = run_with(2);
  run.simulation.work.warmup = 1;
  const auto s = summary_of(
      run, outcome_of({completed_request(0, 50, 100, 2), completed_request(100, 101, 102, 2)}));
  CHECK(s.requests.submitted == 1);
  CHECK(s.ttft_s.max == Approx(1));
  CHECK(s.duration_s == Approx(2));
}

TEST_CASE("use of KV memory: held blocks of all, tokens of held slots") {
  auto run = run_with(1);  // 1,000 blocks of 16
  auto o = outcome_of({completed_request(0, 1, 2, 2)});
  o.usage = {.seconds = 10,
             .block_seconds = 2000,
             .token_seconds = 24'000,
             .blocks_used_max = block_count{500}};
  o.blocks_total = block_count{1000};
  const auto s = summary_of(run, o);
  CHECK(s.kv_used_mean == Approx(0.2));
  CHECK(s.kv_used_max == Approx(0.5));
  CHECK(s.tokens_per_slot == Approx(0.75));
  CHECK(s.blocks_total == 1000);
}

TEST_CASE("three times what can be served is unstable and half of it stable, however long") {
  for (const std::uint32_t requests : {100U, 400U, 1600U}) {
    INFO(requests << " requests");
    CHECK_FALSE(at_load(3, requests).stable);
    CHECK_FALSE(at_load(3, requests).meets_objectives);
    CHECK(at_load(0.5, requests).stable);
    CHECK(at_load(0.5, requests).instability.empty());
  }
}

TEST_CASE("the queue's growth is what makes a run unstable, not its length alone") {
  auto run = run_with(1);
  auto o = outcome_of({completed_request(0, 1, 2, 2)});
  o.submitted = 1000;
  SECTION("more than twice the middle's, and more than the seats") {
    o.waiting_at_middle = 2;
    o.waiting_at_last = 5;
    CHECK_FALSE(summary_of(run, o).stable);
  }
  SECTION("no more than twice the middle's, and under 5 % of arrivals") {
    o.waiting_at_middle = 20;
    o.waiting_at_last = 40;
    CHECK(summary_of(run, o).stable);
  }
  SECTION("no more than twice the middle's, but over 5 % of arrivals") {
    o.waiting_at_middle = 30;
    o.waiting_at_last = 51;
    CHECK_FALSE(summary_of(run, o).stable);
  }
  SECTION("no more than the seats") {
    o.waiting_at_last = 4;
    CHECK(summary_of(run, o).stable);
  }
  SECTION("twice as many replicas have twice the seats") {
    run.simulation.replicas = 2;
    o.waiting_at_last = 8;
    CHECK(summary_of(run, o).stable);
  }
  SECTION("a closed loop cannot be overloaded") {
    run.simulation.work.concurrency = 500;
    o.waiting_at_last = 400;
    CHECK(summary_of(run, o).stable);
  }
}

TEST_CASE("what limits is what the queue's head waited for longest") {
  sim::wait_observer waits;
  waits.on_record(record_at(0, {}));
  CHECK(waits.limit() == limiting_factor::none);
  waits.on_record(record_at(100, {{{}, reason::batch_full, 0, 0}}));      // seats from 100
  waits.on_record(record_at(150, {{{}, reason::no_free_blocks, 0, 0}}));  // memory from 150
  waits.on_record(record_at(180, {{{}, reason::chunked_to_budget, 0, 0}}));
  CHECK(waits.limit() == limiting_factor::seats);  // 50 against 30
  waits.on_record(record_at(500, {{{}, reason::watermark_hold, 0, 0}}));
  waits.on_record(record_at(530, {}));
  CHECK(waits.limit() == limiting_factor::kv_memory);  // 50 against 30 + 30
  waits.on_record(record_at(600, {{{}, reason::no_budget, 0, 0}}));
  waits.on_record(record_at(700, {{{}, reason::static_batch_running, 0, 0}}));
  CHECK(waits.limit() == limiting_factor::token_budget);
  waits.on_record(record_at(900, {}));
  CHECK(waits.limit() == limiting_factor::static_batch);
}
