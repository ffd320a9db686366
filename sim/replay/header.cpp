// Strict reading of a decision log's header: see header.hpp.
#include "sim/replay/header.hpp"

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace octavo::sim {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& message) {
  throw input_error("header: " + message);
}

// Takes fields out of the object one by one; what is left nobody knows.
class field_reader {
 public:
  explicit field_reader(json object) : object_(std::move(object)) {}

  std::string text(const char* name) {
    const json value = take(name);
    if (!value.is_string()) refuse(std::string{name} + ": " + value.dump() + " is no text");
    return value.get<std::string>();
  }

  template <class Int>
  Int number(const char* name) {
    const json value = take(name);
    if (!value.is_number_integer()) {
      refuse(std::string{name} + ": " + value.dump() + " is no whole number");
    }
    const bool huge = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
    const auto number = value.get<std::int64_t>();
    if (huge || number < std::numeric_limits<Int>::min() ||
        number > std::numeric_limits<Int>::max()) {
      refuse(std::string{name} + ": " + value.dump() + " is out of range");
    }
    return static_cast<Int>(number);
  }

  bool flag(const char* name) {
    const auto value = number<std::int64_t>(name);
    if (value != 0 && value != 1) {
      refuse(std::string{name} + ": " + std::to_string(value) + " is neither 0 nor 1");
    }
    return value == 1;
  }

  std::vector<kv_group> groups(const char* name) {
    const json list = take(name);
    if (!list.is_array()) refuse(std::string{name} + ": " + list.dump() + " is no list");
    std::vector<kv_group> result;
    for (const json& entry : list) {
      if (!entry.is_object()) refuse(std::string{name} + ": " + entry.dump() + " is no object");
      field_reader in{entry};
      kv_group group;
      group.window = token_count{in.number<std::int32_t>("window")};
      group.pool_blocks = in.number<std::int32_t>("pool_blocks");
      in.expect_nothing_left();
      result.push_back(group);
    }
    return result;
  }

  void expect_nothing_left() const {
    if (!object_.empty()) refuse("field '" + object_.begin().key() + "' is not known");
  }

 private:
  json take(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) refuse("field '" + std::string{name} + "' is missing");
    json value = std::move(*found);
    object_.erase(found);
    return value;
  }

  json object_;
};

// The library keeps the last of repeated fields and tells nobody.
json parse_object(std::string_view text) {
  std::vector<std::set<std::string>> seen;  // by depth
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start) {
      seen.resize(level + 1);
      seen.emplace_back();
    } else if (event == json::parse_event_t::key &&
               !seen[level].insert(parsed.get<std::string>()).second) {
      refuse("field '" + parsed.get<std::string>() + "' is given twice");
    }
    return true;
  };
  try {
    json object = json::parse(text, check);
    if (!object.is_object()) refuse("is no JSON object");
    return object;
  } catch (const json::exception& problem) {
    refuse(std::string{"is no JSON: "} + problem.what());
  }
}

}  // namespace

engine_config parse_header(std::string_view text) {
  field_reader in{parse_object(text)};
  engine_config c;
  c.policy = parse_policy(in.text("policy"));
  c.scheduling_policy = parse_ordering(in.text("scheduling_policy"));
  c.layout = parse_kv_layout(in.text("kv_layout"));
  c.block_size = token_count{in.number<std::int32_t>("block_size")};
  c.num_blocks = block_count{in.number<std::int32_t>("num_blocks")};
  c.kv_groups = in.groups("kv_groups");
  c.max_model_len = token_count{in.number<std::int32_t>("max_model_len")};
  c.max_num_seqs = in.number<std::int32_t>("max_num_seqs");
  c.max_num_batched_tokens = token_count{in.number<std::int32_t>("max_num_batched_tokens")};
  c.enable_chunked_prefill = in.flag("enable_chunked_prefill");
  c.long_prefill_token_threshold =
      token_count{in.number<std::int32_t>("long_prefill_token_threshold")};
  c.enable_prefix_caching = in.flag("enable_prefix_caching");
  c.scheduler_reserve_full_isl = in.flag("scheduler_reserve_full_isl");
  c.watermark = block_count{in.number<std::int32_t>("watermark")};
  c.max_preemptions = in.number<std::int32_t>("max_preemptions");
  c.run_ahead = in.number<std::int32_t>("run_ahead");
  c.static_max_wait = micros{in.number<std::int64_t>("static_max_wait_us")};
  c.max_num_queued_reqs = in.number<std::int64_t>("max_num_queued_reqs");
  c.max_num_queued_tokens = in.number<std::int64_t>("max_num_queued_tokens");
  c.max_num_samples = in.number<std::int32_t>("max_num_samples");
  in.expect_nothing_left();
  validate(c);
  return c;
}

}  // namespace octavo::sim
