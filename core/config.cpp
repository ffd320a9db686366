// Validation and JSON form of the configuration: see config.hpp.
#include "core/config.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace octavo {
namespace {

template <class Enum, std::size_t N>
using name_table = std::array<std::pair<Enum, std::string_view>, N>;

constexpr name_table<policy_kind, 4> policy_names{{{policy_kind::continuous, "continuous"},
                                                   {policy_kind::prefill_first, "prefill_first"},
                                                   {policy_kind::reserve, "reserve"},
                                                   {policy_kind::static_batch, "static"}}};
constexpr name_table<ordering_kind, 3> ordering_names{
    {{ordering_kind::fcfs, "fcfs"},
     {ordering_kind::priority, "priority"},
     {ordering_kind::shortest_first, "shortest_first"}}};
constexpr name_table<kv_layout, 2> layout_names{
    {{kv_layout::paged, "paged"}, {kv_layout::contiguous, "contiguous"}}};

template <class Enum, std::size_t N>
std::string_view name_in(const name_table<Enum, N>& table, Enum value) {
  for (const auto& [entry, name] : table) {
    if (entry == value) return name;
  }
  return "unknown";
}

template <class Enum, std::size_t N>
Enum parse_in(const name_table<Enum, N>& table, std::string_view field, std::string_view text) {
  std::string allowed;
  for (const auto& [entry, name] : table) {
    if (name == text) return entry;
    allowed += (allowed.empty() ? "" : ", ") + std::string{name};
  }
  throw input_error(std::string{field} + ": '" + std::string{text} +
                    "' is not known; allowed: " + allowed);
}

void require(bool ok, const std::string& message) {
  if (!ok) throw input_error(message);
}

// Sums of a few such values stay far within 32 bits.
constexpr std::int64_t count_max = std::int64_t{1} << 29;

void require_range(std::string_view field, std::int64_t value, std::int64_t least,
                   std::int64_t most) {
  require(value >= least && value <= most,
          std::string{field} + ": " + std::to_string(value) + " is not allowed; it must be " +
              std::to_string(least) + " to " + std::to_string(most));
}

void require_at_least(std::string_view field, std::int64_t value, std::int64_t least) {
  require(value >= least, std::string{field} + ": " + std::to_string(value) +
                              " is not allowed; it must be at least " + std::to_string(least));
}

}  // namespace

std::string_view to_string(policy_kind kind) {
  return name_in(policy_names, kind);
}
std::string_view to_string(ordering_kind kind) {
  return name_in(ordering_names, kind);
}
std::string_view to_string(kv_layout layout) {
  return name_in(layout_names, layout);
}

policy_kind parse_policy(std::string_view name) {
  return parse_in(policy_names, "policy", name);
}
ordering_kind parse_ordering(std::string_view name) {
  return parse_in(ordering_names, "scheduling-policy", name);
}
kv_layout parse_kv_layout(std::string_view name) {
  return parse_in(layout_names, "kv-layout", name);
}

void validate(const engine_config& c) {
  require_range("block-size", c.block_size.raw(), 1, count_max);
  require_range("num-gpu-blocks", c.num_blocks.raw(), 1, count_max);
  require_range("max-model-len", c.max_model_len.raw(), 2, count_max);
  require_at_least("max-num-seqs", c.max_num_seqs, 1);
  require_at_least("max-num-batched-tokens", c.max_num_batched_tokens.raw(), 1);
  require_at_least("long-prefill-token-threshold", c.long_prefill_token_threshold.raw(), 0);
  require_at_least("watermark", c.watermark.raw(), 0);
  require(c.watermark < c.num_blocks, "watermark: " + std::to_string(c.watermark.raw()) +
                                          " blocks are not fewer than the pool's " +
                                          std::to_string(c.num_blocks.raw()) +
                                          "; nothing could ever be admitted beside another");
  require_at_least("max-preemptions", c.max_preemptions, 0);
  require_at_least("static-max-wait", c.static_max_wait.raw(), 0);
  require_at_least("max-num-queued-reqs", c.max_num_queued_reqs, 0);
  require_at_least("max-num-queued-tokens", c.max_num_queued_tokens, 0);
  require_range("max-num-samples", c.max_num_samples, 1, 65'535);
  require(c.run_ahead == 0 || c.run_ahead == 1,
          "run-ahead: " + std::to_string(c.run_ahead) + " is not allowed; it must be 0 or 1");
  require(!c.kv_groups.empty() && c.kv_groups.size() <= max_kv_groups,
          "kv-groups: " + std::to_string(c.kv_groups.size()) + " groups; allowed: 1 to 2");
  require(c.max_num_batched_tokens.raw() >= c.max_num_seqs,
          "max-num-batched-tokens: " + std::to_string(c.max_num_batched_tokens.raw()) +
              " is less than max-num-seqs (" + std::to_string(c.max_num_seqs) +
              "); every running sequence needs one token a step");
  require(c.enable_chunked_prefill || c.max_num_batched_tokens >= c.max_model_len,
          "max-num-batched-tokens: " + std::to_string(c.max_num_batched_tokens.raw()) +
              " is less than max-model-len (" + std::to_string(c.max_model_len.raw()) +
              "); without chunked prefill a whole prompt must fit in one step");
  bool windowed = false;
  for (const kv_group& group : c.kv_groups) {
    require_range("kv-groups.window", group.window.raw(), 0, count_max);
    require_range("kv-groups.pool-blocks", group.pool_blocks, 1, 1024);
    windowed = windowed || group.window.raw() > 0;
  }
  require(!windowed || !c.enable_prefix_caching,
          "enable-prefix-caching: not available for models with sliding-window layers");
}

std::string to_json(const engine_config& c) {
  std::string out = "{";
  const auto text = [&](std::string_view key, std::string_view value) {
    out += (out.size() > 1 ? ",\"" : "\"") + std::string{key} + "\":\"" + std::string{value} + '"';
  };
  const auto number = [&](std::string_view key, std::int64_t value) {
    out += (out.size() > 1 ? ",\"" : "\"") + std::string{key} + "\":" + std::to_string(value);
  };
  text("policy", to_string(c.policy));
  text("scheduling_policy", to_string(c.scheduling_policy));
  text("kv_layout", to_string(c.layout));
  number("block_size", c.block_size.raw());
  number("num_blocks", c.num_blocks.raw());
  out += ",\"kv_groups\":[";
  for (std::size_t i = 0; i < c.kv_groups.size(); ++i) {
    out += (i > 0 ? ",{" : "{") + std::string{"\"window\":"} +
           std::to_string(c.kv_groups[i].window.raw()) +
           ",\"pool_blocks\":" + std::to_string(c.kv_groups[i].pool_blocks) + '}';
  }
  out += ']';
  number("max_model_len", c.max_model_len.raw());
  number("max_num_seqs", c.max_num_seqs);
  number("max_num_batched_tokens", c.max_num_batched_tokens.raw());
  number("enable_chunked_prefill", c.enable_chunked_prefill ? 1 : 0);
  number("long_prefill_token_threshold", c.long_prefill_token_threshold.raw());
  number("enable_prefix_caching", c.enable_prefix_caching ? 1 : 0);
  number("scheduler_reserve_full_isl", c.scheduler_reserve_full_isl ? 1 : 0);
  number("watermark", c.watermark.raw());
  number("max_preemptions", c.max_preemptions);
  number("run_ahead", c.run_ahead);
  number("static_max_wait_us", c.static_max_wait.raw());
  number("max_num_queued_reqs", c.max_num_queued_reqs);
  number("max_num_queued_tokens", c.max_num_queued_tokens);
  number("max_num_samples", c.max_num_samples);
  return out + '}';
}

block_count blocks_held(const engine_config& config, token_count tokens,
                        token_count first_position) {
  block_count held;
  for (const kv_group& group : config.kv_groups) {
    const std::int32_t end = blocks_for(tokens, config.block_size).raw();
    const std::int32_t start = window_start(group, first_position, config.block_size);
    held += block_count{(end - start) * group.pool_blocks};
  }
  return held;
}

block_count blocks_peak(const engine_config& config, token_count tokens, token_count chunk) {
  block_count peak;
  for (const kv_group& group : config.kv_groups) {
    const block_count all = blocks_for(tokens, config.block_size);
    // A window and a chunk that are not aligned to blocks touch one block more.
    const block_count near = blocks_for(group.window + chunk, config.block_size) + block_count{1};
    const block_count of_group = group.window > token_count{0} ? std::min(all, near) : all;
    peak += block_count{of_group.raw() * group.pool_blocks};
  }
  return peak;
}

}  // namespace octavo
