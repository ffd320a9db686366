// Bad configurations are named, and arithmetic on good ones is exact.
#include "core/config.hpp"

#include <functional>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

engine_config good() {
  engine_config config;
  config.num_blocks = block_count{100};
  return config;
}

std::string complaint(const std::function<void(engine_config&)>& spoil) {
  engine_config config = good();
  spoil(config);
  try {
    validate(config);
  } catch (const input_error& error) {
    return error.what();
  }
  return "no complaint";
}

}  // namespace

TEST_CASE("the defaults with a pool are valid") {
  CHECK_NOTHROW(validate(good()));
}

TEST_CASE("every bad field is named with its value and what is allowed") {
  const auto names = [](const std::string& field, const std::string& value,
                        const std::function<void(engine_config&)>& spoil) {
    const std::string text = complaint(spoil);
    CAPTURE(field, text);
    CHECK(text.rfind(field, 0) == 0);
    CHECK(text.find(value) != std::string::npos);
  };
  const auto too_many = token_count{(1 << 29) + 1};
  names("block-size", "0", [](auto& c) { c.block_size = token_count{0}; });
  names("block-size", "536870913", [&](auto& c) { c.block_size = too_many; });
  names("num-gpu-blocks", "-1", [](auto& c) { c.num_blocks = block_count{-1}; });
  names("max-model-len", "1", [](auto& c) { c.max_model_len = token_count{1}; });
  names("max-model-len", "536870913", [&](auto& c) { c.max_model_len = too_many; });
  names("max-num-seqs", "0", [](auto& c) { c.max_num_seqs = 0; });
  names("max-num-batched-tokens", "0", [](auto& c) { c.max_num_batched_tokens = token_count{0}; });
  names("max-num-batched-tokens", "256",
        [](auto& c) { c.max_num_batched_tokens = token_count{255}; });
  names("max-num-batched-tokens", "4096", [](auto& c) { c.enable_chunked_prefill = false; });
  names("long-prefill-token-threshold", "-1",
        [](auto& c) { c.long_prefill_token_threshold = token_count{-1}; });
  names("watermark", "-2", [](auto& c) { c.watermark = block_count{-2}; });
  names("watermark", "fewer than the pool's", [](auto& c) { c.watermark = c.num_blocks; });
  names("max-preemptions", "-1", [](auto& c) { c.max_preemptions = -1; });
  names("run-ahead", "2", [](auto& c) { c.run_ahead = 2; });
  names("static-max-wait", "-5", [](auto& c) { c.static_max_wait = micros{-5}; });
  names("max-num-queued-reqs", "-1", [](auto& c) { c.max_num_queued_reqs = -1; });
  names("max-num-queued-tokens", "-1", [](auto& c) { c.max_num_queued_tokens = -1; });
  names("max-num-samples", "65536", [](auto& c) { c.max_num_samples = 65536; });
  names("kv-groups", "0 groups", [](auto& c) { c.kv_groups.clear(); });
  names("kv-groups", "3 groups", [](auto& c) { c.kv_groups.resize(3); });
  names("kv-groups.window", "-1", [](auto& c) { c.kv_groups = {kv_group{token_count{-1}}}; });
  names("enable-prefix-caching", "sliding-window",
        [](auto& c) { c.kv_groups = {kv_group{token_count{8}}}; });
}

TEST_CASE("names are read back, and an unknown one lists those allowed") {
  for (const auto kind : {policy_kind::continuous, policy_kind::prefill_first, policy_kind::reserve,
                          policy_kind::static_batch}) {
    CHECK(parse_policy(to_string(kind)) == kind);
  }
  for (const auto kind :
       {ordering_kind::fcfs, ordering_kind::priority, ordering_kind::shortest_first}) {
    CHECK(parse_ordering(to_string(kind)) == kind);
  }
  for (const auto layout : {kv_layout::paged, kv_layout::contiguous}) {
    CHECK(parse_kv_layout(to_string(layout)) == layout);
  }
  CHECK_THROWS_WITH(parse_policy("greedy"), Catch::Matchers::ContainsSubstring(
                                                "continuous, prefill_first, reserve, static"));
  CHECK_THROWS_AS(parse_ordering(""), input_error);
  CHECK_THROWS_AS(parse_kv_layout("pagedx"), input_error);
}

TEST_CASE("the JSON form shows every difference between two configurations") {
  const std::string usual = to_json(good());
  const auto differs = [&](const std::function<void(engine_config&)>& change) {
    engine_config config = good();
    change(config);
    return to_json(config) != usual;
  };
  CHECK(differs([](auto& c) { c.policy = policy_kind::reserve; }));
  CHECK(differs([](auto& c) { c.scheduling_policy = ordering_kind::priority; }));
  CHECK(differs([](auto& c) { c.layout = kv_layout::contiguous; }));
  CHECK(differs([](auto& c) { ++c.block_size; }));
  CHECK(differs([](auto& c) { ++c.num_blocks; }));
  CHECK(differs([](auto& c) { c.kv_groups = {kv_group{token_count{8}}}; }));
  CHECK(differs([](auto& c) { c.kv_groups.resize(2); }));
  CHECK(differs([](auto& c) { ++c.max_model_len; }));
  CHECK(differs([](auto& c) { ++c.max_num_seqs; }));
  CHECK(differs([](auto& c) { ++c.max_num_batched_tokens; }));
  CHECK(differs([](auto& c) { c.enable_chunked_prefill = false; }));
  CHECK(differs([](auto& c) { ++c.long_prefill_token_threshold; }));
  CHECK(differs([](auto& c) { c.enable_prefix_caching = false; }));
  CHECK(differs([](auto& c) { c.scheduler_reserve_full_isl = false; }));
  CHECK(differs([](auto& c) { ++c.watermark; }));
  CHECK(differs([](auto& c) { ++c.max_preemptions; }));
  CHECK(differs([](auto& c) { c.run_ahead = 1; }));
  CHECK(differs([](auto& c) { ++c.static_max_wait; }));
  CHECK(differs([](auto& c) { ++c.max_num_queued_reqs; }));
  CHECK(differs([](auto& c) { ++c.max_num_queued_tokens; }));
  CHECK(differs([](auto& c) { ++c.max_num_samples; }));
}

TEST_CASE("a window starts at the block of the oldest token still read") {
  const kv_group six{token_count{6}};
  CHECK(window_start(six, token_count{5}, token_count{4}) == 0);  // reads 0 .. 5
  CHECK(window_start(six, token_count{8}, token_count{4}) == 0);  // reads 3 .. 8
  CHECK(window_start(six, token_count{9}, token_count{4}) == 1);  // reads 4 .. 9
  CHECK(window_start(kv_group{}, token_count{99}, token_count{4}) == 0);
}

TEST_CASE("the peak of a sequence is never less than what it holds on its way") {
  engine_config config = good();
  config.kv_groups = {kv_group{}, kv_group{token_count{6}}};
  config.block_size = token_count{4};
  // 20 tokens: 5 blocks whole; window 6 + chunk 4 touch at most 3 + 1 blocks.
  CHECK(blocks_peak(config, token_count{20}, token_count{4}) == block_count{9});
  CHECK(blocks_peak(config, token_count{3}, token_count{3}) == block_count{2});
  for (std::int32_t chunk = 1; chunk <= 20; ++chunk) {
    const block_count peak = blocks_peak(config, token_count{20}, token_count{chunk});
    for (std::int32_t at = 0; at < 20; at += chunk) {
      const token_count end{std::min(20, at + chunk)};
      CHECK(blocks_held(config, end, token_count{at}) <= peak);
    }
  }
}
