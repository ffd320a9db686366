// What a client asks for, and what the scheduler keeps of it.
//
// A request has one prompt and `n` samples. Each sample is a sequence: one KV
// block table, one stream of tokens. Sequences of a request share the prompt's
// blocks by forking after the prompt is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/block_key.hpp"
#include "core/block_ledger.hpp"
#include "core/reason.hpp"
#include "core/sampling_parameters.hpp"
#include "core/units.hpp"

namespace octavo {

/// Who hears of a request's tokens: an opaque number that the shell resolves.
using sink_id = identifier<struct sink_id_tag, std::uint32_t>;

/// A request as submitted.
struct request_spec {
  request_id id;
  sink_id sink;
  /// Tokens of the prompt; `prompt` holds their ids where they are known.
  token_count prompt_tokens;
  std::shared_ptr<const std::vector<token_id>> prompt;
  /// Limit of generated tokens, at least 1.
  token_count max_tokens{1};
  /// Lower is more urgent; used by the priority ordering alone.
  std::int32_t priority = 0;
  /// Samples to generate.
  std::int32_t n = 1;
  /// Keys of the leading full blocks, as far as somebody can know them: of the
  /// prompt, and in a trace of the first sample's output too. Where there are
  /// fewer keys than blocks, the rest is private to the request.
  std::vector<block_key> keys;
  /// What the first key chains from: the root of its cache scope (block_key.hpp), which
  /// keys its first block too where generated tokens complete that. None: the plain root.
  std::optional<block_key> root;
  /// Whether its sink hears of its acceptance into the queue, before any token.
  bool announce = false;
  /// How tokens are chosen; null where nobody samples (simulation).
  std::shared_ptr<const sampling_parameters> sampling;
};

enum class sequence_state : std::uint8_t {
  waiting,   ///< in the waiting queue, holds no blocks
  running,   ///< holds blocks, gets tokens
  finished,  ///< ended; kept only while a step in flight still names it
};

/// One sample of a request: the scheduler's record of it.
struct sequence {
  request_id id;
  std::uint32_t request = 0;  ///< index of its request in the scheduler
  std::uint32_t index = 0;    ///< its own index in the scheduler
  std::uint16_t sample = 0;
  sequence_state state = sequence_state::waiting;

  token_count prompt_tokens;
  token_count output_tokens;    ///< generated and booked
  token_count computed_tokens;  ///< KV present once the steps in flight are done
  token_count pending_tokens;   ///< assumed of steps in flight, not booked yet
  token_count end_tokens;       ///< prompt + output may not exceed this

  std::int32_t priority = 0;
  std::uint64_t arrival = 0;  ///< order of submission
  micros submitted_at;

  std::uint32_t slot = 0;  ///< row of the block tables while it runs
  block_account account;
  token_count reserved_tokens;    ///< room taken at admission; 0: grows as needed
  micros admitted_at;             ///< of the first admission
  token_count cached_tokens{-1};  ///< hit at the first admission; -1: not yet admitted
  std::int32_t preemptions = 0;
  std::int32_t steps_in_flight = 0;
  /// Blocks from the first on whose names were asked of the block manager.
  std::int32_t named_blocks = 0;
  /// Its place in the waiting queue, while `queued`.
  bool queued = false;
  std::int64_t queue_rank = 0;
  token_count queue_tokens;
  /// Samples that will fork from it when its prompt is computed.
  std::int32_t forks_wanted = 0;
  /// Its own text has ended; its place in a static batch has not.
  bool held_by_batch = false;
  /// A step with it failed: what later ones computed on top is good for nobody.
  bool failed = false;
  /// Keys of blocks completed by generated tokens, from results.
  std::vector<block_key> output_keys;
  std::vector<token_id> output;

  /// Prompt and output so far, those assumed of steps in flight included.
  [[nodiscard]] token_count known_tokens() const {
    return prompt_tokens + output_tokens + pending_tokens;
  }
  /// Tokens whose KV is still to be computed before the next can be sampled.
  [[nodiscard]] token_count remaining_tokens() const { return known_tokens() - computed_tokens; }
  /// A decode has one token left to compute, and that one was generated.
  [[nodiscard]] bool decodes() const {
    return remaining_tokens().raw() == 1 && output_tokens + pending_tokens > token_count{0};
  }
  /// Nothing more may be sampled: the steps in flight end it.
  [[nodiscard]] bool ends_in_flight() const { return known_tokens() >= end_tokens; }
};

}  // namespace octavo
