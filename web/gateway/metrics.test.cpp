// Metrics: what Prometheus reads after requests of known tokens and times.
#include "web/gateway/metrics.hpp"

#include <map>
#include <sstream>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gateway;
using actors::event_batch;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* labels = R"(engine="0",model_name="m")";

/// The samples of a text: "name{labels}" to value. Labels are sorted in the text.
std::map<std::string, double> samples_of(const std::string& text) {
  std::map<std::string, double> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const auto space = line.rfind(' ');
    const bool is_new =
        samples.emplace(line.substr(0, space), std::stod(line.substr(space))).second;
    REQUIRE(is_new);
  }
  return samples;
}

/// A value of engine 0 by its name without prefix.
double value(metrics& of, const std::string& name) {
  INFO(name);
  const auto samples = samples_of(of.text({}));
  const auto found = samples.find("vllm:" + name + "{" + labels + "}");
  REQUIRE(found != samples.end());
  return found->second;
}

generation request_of(std::vector<std::uint64_t> ids, std::int32_t prompt_tokens,
                      std::int32_t max_tokens, std::int32_t n = 1, double arrived_s = 100) {
  generation of;
  of.request.n = n;
  of.times.arrived_s = arrived_s;
  for (const std::uint64_t id : ids) {
    of.ids.emplace_back(id);
    of.prompts.push_back(
        {std::make_shared<std::vector<token_id>>(prompt_tokens), token_count{max_tokens}, {}});
  }
  return of;
}

token_event token(std::uint64_t id, std::uint16_t sample = 0) {
  token_event event;
  event.request = request_id{id};
  event.sample = sample;
  return event;
}

/// Submitted at 1 s and admitted at 3 s of the scheduler's clock.
finish_event finish(std::uint64_t id, reason why, std::int32_t cached, std::uint16_t sample = 0,
                    bool last = true) {
  finish_event event;
  event.request = request_id{id};
  event.sample = sample;
  event.request_done = last;
  event.why = why;
  event.cached_tokens = token_count{cached};
  event.submitted_at = micros{1'000'000};
  event.admitted_at = micros{3'000'000};
  return event;
}

event_batch batch(std::int64_t engine_s, std::vector<token_event> tokens,
                  std::vector<finish_event> finishes = {}) {
  event_batch events;
  events.now = micros{engine_s * 1'000'000};
  events.tokens = std::move(tokens);
  events.finishes = std::move(finishes);
  return events;
}

metrics_options small_options() {
  return {.model_name = "m", .max_model_len = 1000};
}

/// A prompt of 40 tokens, 16 of them cached, and 3 tokens: arrival at 100 s, the first
/// token 7 s later, the others 1 and 3 s after that.
void run_one(metrics& counts) {
  counts.started(request_of({1}, 40, 50));
  counts.heard(batch(8, {token(1)}), 107);
  counts.heard(batch(9, {token(1)}), 108);
  counts.heard(batch(12, {token(1)}, {finish(1, reason::finished_eos, 16)}), 111);
}

}  // namespace

TEST_CASE("one request's tokens and times stand in every metric") {
  metrics counts{small_options()};
  run_one(counts);
  const std::map<std::string, double> expected{
      {"prompt_tokens_total", 40},
      {"generation_tokens_total", 3},
      {"prefix_cache_queries_total", 40},
      {"prefix_cache_hits_total", 16},
      {"prompt_tokens_cached_total", 16},
      {"prompt_tokens_recomputed_total", 0},
      {"request_prompt_tokens_sum", 40},
      {"request_generation_tokens_sum", 3},
      {"request_max_num_generation_tokens_sum", 3},
      {"request_params_max_tokens_sum", 50},
      {"request_params_n_sum", 1},
      {"request_prefill_kv_computed_tokens_sum", 24},
      {"iteration_tokens_total_sum", 43},
      {"iteration_tokens_total_count", 3},
      {"time_to_first_token_seconds_sum", 7},
      {"inter_token_latency_seconds_sum", 4},
      {"inter_token_latency_seconds_count", 2},
      {"request_time_per_output_token_seconds_sum", 2},
      {"e2e_request_latency_seconds_sum", 11},
      {"request_queue_time_seconds_sum", 2},
      {"request_prefill_time_seconds_sum", 5},
      {"request_decode_time_seconds_sum", 4},
      {"request_inference_time_seconds_sum", 9},
      {"request_inference_time_seconds_count", 1},
  };
  for (const auto& [name, wanted] : expected) {
    INFO(name);
    CHECK(value(counts, name) == Approx(wanted));
  }
  const auto samples = samples_of(counts.text({}));
  const std::string source = std::string{"vllm:prompt_tokens_by_source_total{"} + labels;
  CHECK(samples.at(source + R"(,source="local_compute"})") == 24);
  CHECK(samples.at(source + R"(,source="local_cache_hit"})") == 16);
  CHECK(samples.at(R"(vllm:request_success_total{engine="0",finished_reason="stop",)"
                   R"(model_name="m"})") == 1);
}

TEST_CASE("buckets are vLLM's") {
  metrics counts{{.model_name = "m", .max_model_len = 1999}};
  const std::string text = counts.text({});
  const auto bounds = [&](const std::string& name) {
    std::string found;
    std::istringstream lines(text);
    const std::string start = "vllm:" + name + "_bucket{" + labels + ",le=\"";
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(start)) {
        found += line.substr(start.size(), line.find('"', start.size()) - start.size()) + " ";
      }
    }
    return found;
  };
  CHECK(bounds("request_prompt_tokens") == "1 2 5 10 20 50 100 200 500 1000 +Inf ");
  CHECK(bounds("request_params_n") == "1 2 5 10 20 +Inf ");
  CHECK(bounds("iteration_tokens_total") ==
        "1 8 16 32 64 128 256 512 1024 2048 4096 8192 16384 +Inf ");
  CHECK(bounds("time_to_first_token_seconds") ==
        "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 "
        "2560 +Inf ");
  CHECK(bounds("inter_token_latency_seconds") ==
        "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80 +Inf ");
  CHECK(bounds("e2e_request_latency_seconds") ==
        "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680 +Inf ");
}

TEST_CASE("samples of a prompt are requests of their own, and its prompt counts once") {
  metrics counts{small_options()};
  counts.started(request_of({7}, 10, 5, 2));
  counts.heard(batch(4, {token(7, 0), token(7, 1)}), 101);
  counts.heard(batch(5, {token(7, 1)}, {finish(7, reason::finished_stop, 0, 0, false)}), 102);
  counts.heard(batch(6, {token(7, 1)}, {finish(7, reason::finished_length, 0, 1)}), 103);
  CHECK(value(counts, "prompt_tokens_total") == 10);
  CHECK(value(counts, "generation_tokens_total") == 4);
  CHECK(value(counts, "inter_token_latency_seconds_sum") == Approx(2));
  CHECK(value(counts, "time_to_first_token_seconds_count") == 2);
  CHECK(value(counts, "request_generation_tokens_count") == 2);
  CHECK(value(counts, "request_max_num_generation_tokens_sum") == 3);
  CHECK(value(counts, "request_params_n_sum") == 2);
  CHECK(value(counts, "request_params_n_count") == 1);
}

TEST_CASE("a request whose client left is followed until the engine lets go of it") {
  metrics counts{small_options()};
  counts.started(request_of({1, 2}, 30, 5));
  counts.heard(batch(4, {token(1)}), 101);
  counts.heard(
      batch(5, {},
            {finish(1, reason::finished_cancelled, 16), finish(2, reason::finished_cancelled, -1)}),
      102);
  const auto samples = samples_of(counts.text({}));
  CHECK(samples.at(R"(vllm:request_success_total{engine="0",finished_reason="abort",)"
                   R"(model_name="m"})") == 2);
  // The second never ran: it has no times and was not looked up.
  CHECK(value(counts, "e2e_request_latency_seconds_count") == 1);
  CHECK(value(counts, "prefix_cache_queries_total") == 30);
}

TEST_CASE("where the engine is gone, requests end in errors and sources still add up") {
  metrics counts{small_options()};
  const generation of = request_of({1, 2}, 30, 5);
  counts.started(of);
  counts.heard(batch(4, {token(1)}), 101);
  counts.failed(of);
  counts.failed(of);
  counts.heard(batch(5, {token(1)}, {finish(1, reason::finished_eos, 16)}), 102);
  const auto samples = samples_of(counts.text({}));
  CHECK(samples.at(R"(vllm:request_success_total{engine="0",finished_reason="error",)"
                   R"(model_name="m"})") == 2);
  CHECK(value(counts, "prompt_tokens_total") == 30);
  CHECK(samples.at(std::string{"vllm:prompt_tokens_by_source_total{"} + labels +
                   R"(,source="local_compute"})") == 30);
  CHECK(value(counts, "generation_tokens_total") == 1);
}

TEST_CASE("a refused request counts as refused, by its reason, and as nothing else") {
  metrics counts{small_options()};
  counts.started(request_of({1}, 30, 5));
  counts.heard(batch(4, {}, {finish(1, reason::rejected_queue_full, -1)}), 101);
  const std::string text = counts.text({});
  CHECK_THAT(text, ContainsSubstring("vllm:request_rejected_total{model_name=\"m\",reason=\""));
  double ends = 0;
  for (const auto& [name, count] : samples_of(text)) {
    if (name.starts_with("vllm:request_success_total")) ends += count;
  }
  CHECK(ends == 0);
}

TEST_CASE("counters never fall, whatever the engine tells") {
  metrics counts{small_options()};
  counts.started(request_of({1}, 10, 5));
  // More cached than the prompt has, and sums that run backwards.
  counts.heard(batch(4, {token(1)}, {finish(1, reason::finished_eos, 25)}), 101);
  scheduler_statistics now;
  now.preemptions = 7;
  CHECK_FALSE(counts.text({now}).empty());
  now.preemptions = 3;
  CHECK_FALSE(counts.text({now}).empty());
  CHECK(value(counts, "num_preemptions_total") == 7);
  CHECK(value(counts, "prefix_cache_hits_total") == 10);
  for (const auto& [name, count] : samples_of(counts.text({}))) {
    INFO(name);
    CHECK(count >= 0);
  }
}

TEST_CASE("gauges are what statistics say, for each replica, and else what was last heard") {
  metrics counts{small_options()};
  scheduler_statistics now;
  now.running = 3;
  now.waiting = 4;
  now.blocks_used = block_count{25};
  now.blocks_total = block_count{100};
  const auto samples = samples_of(counts.text({now, {}}));
  CHECK(samples.at(R"(vllm:num_requests_running{engine="0",model_name="m"})") == 3);
  CHECK(samples.at(R"(vllm:num_requests_waiting{engine="0",model_name="m"})") == 4);
  CHECK(samples.at(R"(vllm:kv_cache_usage_perc{engine="0",model_name="m"})") == 0.25);
  CHECK(samples.at(R"(vllm:num_requests_running{engine="1",model_name="m"})") == 0);
  event_batch events;
  events.running = 9;
  events.blocks_used = block_count{50};
  counts.heard(events, 101);
  CHECK(value(counts, "num_requests_running") == 9);
  CHECK(value(counts, "kv_cache_usage_perc") == 0.5);
}

TEST_CASE("HTTP answers are counted by route, method and class of status") {
  metrics counts{small_options()};
  counts.answered("/v1/models", "GET", 200, 0.25);
  counts.answered("/v1/models", "GET", 204, 0.5);
  counts.answered("/v1/models", "GET", 503, 2);
  const auto samples = samples_of(counts.text({}));
  CHECK(samples.at(R"(http_requests_total{handler="/v1/models",method="GET",status="2xx"})") == 2);
  CHECK(samples.at(R"(http_requests_total{handler="/v1/models",method="GET",status="5xx"})") == 1);
  CHECK(samples.at(R"(http_request_duration_seconds_sum{handler="/v1/models",method="GET"})") ==
        Approx(2.75));
}

TEST_CASE("names start with the prefix, and labels are escaped") {
  metrics_options options = small_options();
  options.prefix = "octavo_2";
  options.model_name = "a\"b\\c\nd";
  options.cache_config = {{"block_size", "16"}};
  metrics counts{options};
  const std::string text = counts.text({});
  CHECK_THAT(text, ContainsSubstring("octavo_2:cache_config_info{block_size=\"16\",engine=\"0\","
                                     "model_name=\"a\\\"b\\\\c\\nd\"} 1\n"));
  CHECK_THAT(text, !ContainsSubstring("vllm"));
  CHECK_THAT(text, ContainsSubstring("# TYPE octavo_2:num_requests_running gauge\n"));
  CHECK_THAT(text, ContainsSubstring("# TYPE octavo_2:prompt_tokens_total counter\n"));
  CHECK_THAT(text, ContainsSubstring("# TYPE octavo_2:e2e_request_latency_seconds histogram\n"));
}

TEST_CASE("a prefix that no metric can have is refused") {
  for (const char* prefix : {"", "2x", "a-b", "a:b", "__x", "\xc3\xa4"}) {
    metrics_options options = small_options();
    options.prefix = prefix;
    INFO(prefix);
    CHECK_THROWS_AS(metrics{options}, input_error);
  }
}
