// The engine's configuration: everything a scheduling decision may depend on,
// and nothing else. It is written whole into the decision log's header, so that
// a log replays without its command line.
//
// Names and defaults follow `vllm serve` where the meaning is the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace octavo {

/// Who may run when (core/policy, one file each).
enum class policy_kind : std::uint8_t { continuous, prefill_first, reserve, static_batch };
/// In which order waiting requests are considered (core/waiting_queue.hpp).
enum class ordering_kind : std::uint8_t { fcfs, priority, shortest_first };
/// How KV memory is given out: in blocks as needed, or `max_model_len` tokens
/// for each sequence at once, as before PagedAttention (Kwon et al., SOSP 2023).
enum class kv_layout : std::uint8_t { paged, contiguous };

/// Layers that keep the same part of the context share block tables.
struct kv_group {
  /// Attention window in tokens; 0: the whole context.
  token_count window;
  /// Blocks of the pool taken for each block_size tokens: groups of unequal
  /// numbers of layers share one pool of equal blocks.
  std::int32_t pool_blocks = 1;

  friend bool operator==(const kv_group&, const kv_group&) = default;
};

inline constexpr std::size_t max_kv_groups = 2;

struct engine_config {
  policy_kind policy = policy_kind::continuous;
  ordering_kind scheduling_policy = ordering_kind::fcfs;
  kv_layout layout = kv_layout::paged;

  /// Tokens a block holds.
  token_count block_size{16};
  /// Blocks in the pool. No default: it follows from memory or an override.
  block_count num_blocks{0};
  std::vector<kv_group> kv_groups{kv_group{}};

  /// Longest prompt plus output.
  token_count max_model_len{4096};
  /// Sequences that run at once.
  std::int32_t max_num_seqs = 256;
  /// Tokens of one step, prefill and decode together.
  token_count max_num_batched_tokens{2048};
  bool enable_chunked_prefill = true;
  /// A longer prefill gets at most this many tokens a step; 0: no limit.
  token_count long_prefill_token_threshold{0};
  bool enable_prefix_caching = true;
  /// Admit only where the whole prompt fits, not just its first chunk.
  bool scheduler_reserve_full_isl = true;
  /// Blocks kept free when admitting beside running sequences.
  block_count watermark{0};
  /// After this many preemptions a request reserves its worst case.
  std::int32_t max_preemptions = 3;
  /// A step is planned while one runs (1), or after it (0).
  std::int32_t run_ahead = 0;
  /// How long a static batch waits to fill.
  micros static_max_wait{100'000};
  /// Bounds of the waiting queue; 0: none.
  std::int64_t max_num_queued_reqs = 0;
  std::int64_t max_num_queued_tokens = 0;
  /// Largest `n` of a request.
  std::int32_t max_num_samples = 128;

  friend bool operator==(const engine_config&, const engine_config&) = default;
};

/// Throws input_error naming the field and what is allowed.
void validate(const engine_config& config);

/// One line of JSON with every field, in declaration order.
[[nodiscard]] std::string to_json(const engine_config& config);

[[nodiscard]] std::string_view to_string(policy_kind kind);
[[nodiscard]] std::string_view to_string(ordering_kind kind);
[[nodiscard]] std::string_view to_string(kv_layout layout);

/// The inverse of to_string; throws input_error listing the names allowed.
[[nodiscard]] policy_kind parse_policy(std::string_view name);
[[nodiscard]] ordering_kind parse_ordering(std::string_view name);
[[nodiscard]] kv_layout parse_kv_layout(std::string_view name);

/// Blocks that a sequence of one KV group set holds when `tokens` tokens have a
/// place, of which those before `first_position` minus the window are released.
[[nodiscard]] block_count blocks_held(const engine_config& config, token_count tokens,
                                      token_count first_position);

/// The most blocks that a sequence of `tokens` tokens holds at any time when it
/// is computed `chunk` tokens a step.
[[nodiscard]] block_count blocks_peak(const engine_config& config, token_count tokens,
                                      token_count chunk);

/// First block index of `group` that a token at `position` still reads.
[[nodiscard]] constexpr std::int32_t window_start(const kv_group& group, token_count position,
                                                  token_count block_size) {
  if (group.window.raw() == 0) return 0;
  const std::int32_t oldest = position.raw() + 1 - group.window.raw();
  return oldest <= 0 ? 0 : oldest / block_size.raw();
}

}  // namespace octavo
