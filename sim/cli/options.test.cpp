// Every flag parses into its field; the last of a repeated flag counts.
#include "sim/cli/options.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using Catch::Matchers::ContainsSubstring;
using sim::parse_duration_us;
using sim::parse_sim_options;
using sim::sim_options;

namespace {

sim_options parsed(const std::vector<std::string>& arguments) {
  return parse_sim_options(arguments).options;
}

template <class T>
struct flag_of {
  const char* name;
  T sim_options::*field;
};

const std::vector<flag_of<std::string>> text_flags{
    {"--trace", &sim_options::trace},
    {"--model", &sim_options::model},
    {"--gpu", &sim_options::gpu},
    {"--profile", &sim_options::profile},
    {"--step-time", &sim_options::step_time},
    {"--host-time", &sim_options::host_time},
    {"--router", &sim_options::router},
    {"--max-model-len", &sim_options::max_model_len},
    {"--quantization", &sim_options::quantization},
    {"--kv-cache-dtype", &sim_options::kv_cache_dtype},
    {"--scheduling-policy", &sim_options::scheduling_policy},
    {"--policy", &sim_options::policy},
    {"--kv-layout", &sim_options::kv_layout},
    {"--static-max-wait", &sim_options::static_max_wait},
    {"--assume-max-tokens", &sim_options::assume_max_tokens},
    {"--slo-ttft", &sim_options::slo_ttft},
    {"--slo-tpot", &sim_options::slo_tpot},
    {"--shard", &sim_options::shard},
    {"--out-json", &sim_options::out_json},
    {"--out-csv", &sim_options::out_csv},
    {"--decision-log", &sim_options::decision_log},
    {"--chrome-trace", &sim_options::chrome_trace},
    {"--explain", &sim_options::explain},
    {"--replay", &sim_options::replay},
    {"--kv-table", &sim_options::kv_table},
};

const std::vector<flag_of<std::int64_t>> count_flags{
    {"--replicas", &sim_options::replicas},
    {"--tensor-parallel-size", &sim_options::tensor_parallel_size},
    {"--tp", &sim_options::tensor_parallel_size},
    {"--block-size", &sim_options::block_size},
    {"--num-gpu-blocks-override", &sim_options::num_gpu_blocks_override},
    {"--max-num-seqs", &sim_options::max_num_seqs},
    {"--max-num-batched-tokens", &sim_options::max_num_batched_tokens},
    {"--long-prefill-token-threshold", &sim_options::long_prefill_token_threshold},
    {"--max-num-queued-reqs", &sim_options::max_num_queued_reqs},
    {"--max-num-queued-tokens", &sim_options::max_num_queued_tokens},
    {"--run-ahead", &sim_options::run_ahead},
    {"--watermark", &sim_options::watermark_blocks},
    {"--max-preemptions", &sim_options::max_preemptions},
    {"--requests", &sim_options::requests},
    {"--concurrency", &sim_options::concurrency},
    {"--warmup", &sim_options::warmup},
    {"--seed", &sim_options::seed},
    {"--jobs", &sim_options::jobs},
};

const std::vector<flag_of<double>> number_flags{
    {"--gpu-memory-utilization", &sim_options::gpu_memory_utilization},
    {"--rate-scale", &sim_options::rate_scale},
    {"--slo-percentile", &sim_options::slo_percentile},
};

const std::vector<flag_of<bool>> switches{
    {"--enable-prefix-caching", &sim_options::enable_prefix_caching},
    {"--enable-chunked-prefill", &sim_options::enable_chunked_prefill},
    {"--scheduler-reserve-full-isl", &sim_options::scheduler_reserve_full_isl},
    {"--find-capacity", &sim_options::find_capacity},
    {"--find-min-gpus", &sim_options::find_min_gpus},
    {"--no-decision-log", &sim_options::no_decision_log},
    {"--timeline", &sim_options::timeline},
    {"--quiet", &sim_options::quiet},
    {"--verify", &sim_options::verify},
    {"--list-gpus", &sim_options::list_gpus},
    {"--list-models", &sim_options::list_models},
};

// Counts whose flags take only a small range.
bool is_narrow(const std::string& flag) {
  return flag == "--run-ahead";
}

}  // namespace

TEST_CASE("every text flag parses, with a blank or an equals sign, and the last one wins") {
  for (const auto& [flag, field] : text_flags) {
    INFO(flag);
    CHECK(parsed({flag, "some"}).*field == "some");
    CHECK(parsed({std::string{flag} + "=some"}).*field == "some");
    CHECK(parsed({flag, "first", "--seed", "3", flag, "last"}).*field == "last");
    CHECK_THROWS_WITH(parsed({flag, ""}), ContainsSubstring(flag) && ContainsSubstring("needed"));
  }
}

TEST_CASE("every count parses, the last one wins, and what is no whole number is refused") {
  for (const auto& [flag, field] : count_flags) {
    INFO(flag);
    const std::int64_t value = is_narrow(flag) ? 1 : 37;
    CHECK(parsed({flag, std::to_string(value)}).*field == value);
    CHECK(parsed({flag, is_narrow(flag) ? "0" : "5", flag, std::to_string(value)}).*field == value);
    for (const auto* bad : {"many", "1.5", "", "nan", "12x"}) {
      const bool alias = std::string_view{flag} == "--tp";
      CHECK_THROWS_WITH(parsed({flag, bad}),
                        ContainsSubstring(alias ? "--tensor-parallel-size" : flag));
      CHECK_THROWS_AS(parsed({flag, bad}), input_error);
    }
  }
}

TEST_CASE("every number and every switch parses, and the last one wins") {
  for (const auto& [flag, field] : number_flags) {
    INFO(flag);
    CHECK(parsed({flag, "1.5", flag, "2.25"}).*field == 2.25);
    CHECK_THROWS_WITH(parsed({flag, "half"}), ContainsSubstring(flag));
  }
  for (const auto& [flag, field] : switches) {
    INFO(flag);
    CHECK(parsed({flag}).*field);
  }
}

TEST_CASE("switches that are on can be turned off, and on again") {
  for (const auto& [flag, field] : switches) {
    if (!(sim_options{}.*field)) continue;
    INFO(flag);
    const std::string off = "--no-" + std::string{flag}.substr(2);
    CHECK_FALSE(parsed({off}).*field);
    CHECK(parsed({off, flag}).*field);
    CHECK_FALSE(parsed({flag, off}).*field);
  }
}

TEST_CASE("repeated --vary collects, all other flags keep the last") {
  CHECK(parsed({"--vary", "a=1,2", "--seed", "4", "--vary", "b=3"}).vary ==
        std::vector<std::string>{"a=1,2", "b=3"});
}

TEST_CASE("what no flag is, and a flag without its value, is refused by name") {
  CHECK_THROWS_WITH(parsed({"--max-num-seq", "3"}), ContainsSubstring("--max-num-seq"));
  CHECK_THROWS_WITH(parsed({"stray"}), ContainsSubstring("stray"));
  CHECK_THROWS_WITH(parsed({"--trace"}), ContainsSubstring("--trace"));
}

TEST_CASE("bounded flags name their bounds") {
  CHECK_THROWS_WITH(parsed({"--replicas", "65"}), ContainsSubstring("1 to 64"));
  CHECK_THROWS_WITH(parsed({"--replicas", "0"}), ContainsSubstring("1 to 64"));
  CHECK_THROWS_WITH(parsed({"--run-ahead", "2"}), ContainsSubstring("0 to 1"));
  CHECK_THROWS_WITH(parsed({"--slo-percentile", "100.5"}), ContainsSubstring("--slo-percentile"));
}

TEST_CASE("a simulation runs ahead only where it is asked to") {
  CHECK(engine_of(parsed({})).run_ahead == 0);
  CHECK(engine_of(parsed({"--run-ahead", "1"})).run_ahead == 1);
}

TEST_CASE("the help mentions every flag") {
  const auto help = parse_sim_options({"--help"}).text;
  REQUIRE(help);
  const auto mentions = [&](const auto& flags) {
    for (const auto& flag : flags) CHECK_THAT(*help, ContainsSubstring(flag.name));
  };
  mentions(text_flags);
  mentions(count_flags);
  mentions(number_flags);
  mentions(switches);
  CHECK_THAT(*help, ContainsSubstring("--vary"));
  CHECK_THAT(*help, ContainsSubstring("--no-enable-prefix-caching"));
}

TEST_CASE("durations are numbers with a unit, or seconds") {
  CHECK(parse_duration_us("2s", "--x") == 2e6);
  CHECK(parse_duration_us("50ms", "--x") == 50e3);
  CHECK(parse_duration_us("1.5us", "--x") == 1.5);
  CHECK(parse_duration_us("2min", "--x") == 120e6);
  CHECK(parse_duration_us("0.25", "--x") == 0.25e6);
  for (const auto* bad : {"", "s", "fast", "-1s", "nan", "inf", "1h", "1 s", "1e300s"}) {
    INFO(bad);
    CHECK_THROWS_WITH(parse_duration_us(bad, "--slo-ttft"),
                      ContainsSubstring("--slo-ttft") && ContainsSubstring("50ms"));
  }
}
