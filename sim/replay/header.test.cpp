// Reading a log's header back: every field, and nothing but the fields.
#include "sim/replay/header.hpp"

#include <string>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using Catch::Matchers::ContainsSubstring;

namespace {

// No field has its default.
engine_config unusual() {
  engine_config c;
  c.policy = policy_kind::static_batch;
  c.scheduling_policy = ordering_kind::shortest_first;
  c.layout = kv_layout::contiguous;
  c.block_size = token_count{8};
  c.num_blocks = block_count{77};
  c.kv_groups = {kv_group{}, kv_group{token_count{512}, 3}};
  c.max_model_len = token_count{900};
  c.max_num_seqs = 5;
  c.max_num_batched_tokens = token_count{1000};
  c.enable_chunked_prefill = false;
  c.long_prefill_token_threshold = token_count{64};
  c.enable_prefix_caching = false;
  c.scheduler_reserve_full_isl = false;
  c.watermark = block_count{2};
  c.max_preemptions = 9;
  c.run_ahead = 1;
  c.static_max_wait = micros{1234};
  c.max_num_queued_reqs = 10;
  c.max_num_queued_tokens = 3'000'000'000;
  c.max_num_samples = 6;
  return c;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  if (at == std::string::npos) throw std::logic_error("no " + what);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("header: what was written is read back, field by field") {
  engine_config usual;
  usual.num_blocks = block_count{100};
  CHECK(sim::parse_header(to_json(usual)) == usual);
  CHECK(sim::parse_header(to_json(unusual())) == unusual());
}

TEST_CASE("header: each field must be there") {
  const std::string whole = to_json(unusual());
  // Renames one key at a time: that one is missing then.
  std::size_t fields = 0;
  for (std::size_t at = 1; at < whole.size(); ++at) {
    if (whole[at] != '"' || (whole[at - 1] != ',' && whole[at - 1] != '{')) continue;
    const std::string name = whole.substr(at + 1, whole.find('"', at + 1) - at - 1);
    std::string text = whole;
    text.insert(at + 1, "x_");
    CHECK_THROWS_WITH(sim::parse_header(text), ContainsSubstring("'" + name + "' is missing"));
    ++fields;
  }
  CHECK(fields >= 20);
}

TEST_CASE("header: nothing is overlooked") {
  const std::string whole = to_json(unusual());
  const auto refused = [&](const std::string& what, const std::string& by, const char* message) {
    INFO(what << " -> " << by);
    CHECK_THROWS_AS(sim::parse_header(replaced(whole, what, by)), input_error);
    CHECK_THROWS_WITH(sim::parse_header(replaced(whole, what, by)), ContainsSubstring(message));
  };
  refused("{\"policy\"", "{\"colour\":1,\"policy\"", "'colour' is not known");
  refused("\"window\":512", "\"window\":512,\"depth\":1", "'depth' is not known");
  refused("\"run_ahead\":1", "\"run_ahead\":1,\"run_ahead\":0", "'run_ahead' is given twice");
  refused("\"window\":512", "\"window\":512,\"window\":512", "'window' is given twice");
  refused("\"run_ahead\":1", "\"run_ahead\":2", "run-ahead");
  refused("\"run_ahead\":1", "\"run_ahead\":\"1\"", "run_ahead");
  refused("\"run_ahead\":1", "\"run_ahead\":1.0", "run_ahead");
  refused("\"num_blocks\":77", "\"num_blocks\":4294967373", "num_blocks");
  refused("\"num_blocks\":77", "\"num_blocks\":18446744073709551615", "num_blocks");
  refused("\"enable_prefix_caching\":0", "\"enable_prefix_caching\":2", "neither 0 nor 1");
  refused("\"policy\":\"static\"", "\"policy\":\"fifo\"", "fifo");
  refused("\"policy\":\"static\"", "\"policy\":3", "policy");
  refused("\"kv_groups\":[", "\"kv_groups\":7,\"x\":[", "kv_groups");
  refused("\"kv_groups\":[{", "\"kv_groups\":[5,{", "kv_groups");
}

TEST_CASE("header: what is no JSON object is refused") {
  for (const char* text : {"", "{", "[]", "null", "12", "{} {}"}) {
    INFO(text);
    CHECK_THROWS_AS(sim::parse_header(text), input_error);
  }
}
