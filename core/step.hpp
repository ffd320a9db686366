// The one object that travels the ring: scheduler -> block manager -> executor
// -> scheduler. Each adds its part, nobody copies it. Arrays are flat; `begin`
// and `count` fields point into the array named beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/block_key.hpp"
#include "core/sampling_parameters.hpp"
#include "core/units.hpp"

namespace octavo {

/// A sequence gives its blocks back.
struct release_command {
  std::uint32_t slot = 0;
};

/// A new table in `child` that shares the first `shared_blocks` blocks of
/// `parent`; where `copy_last`, the parent's next block is copied into a new one.
struct fork_command {
  std::uint32_t parent_slot = 0;
  std::uint32_t child_slot = 0;
  std::int32_t shared_blocks = 0;
  bool copy_last = false;
  std::uint32_t child = 0;  ///< the scheduler's index
};

/// A new table that starts with cached blocks `hits[hits_begin, +hits_count)`.
struct admission_command {
  std::uint32_t sequence = 0;  ///< the scheduler's index
  std::uint32_t slot = 0;
  request_id request;
  std::uint16_t sample = 0;
  std::uint32_t hits_begin = 0;
  std::uint32_t hits_count = 0;
  /// For statistics: tokens asked for, and whether it ran before.
  token_count query_tokens;
  bool resumed = false;
  /// For an executor that samples: all `query_tokens` token ids of the sequence
  /// in `step::admitted_tokens`, of which the first `prompt_tokens` are prompt.
  std::uint32_t tokens_begin = 0;
  token_count prompt_tokens;
  /// Prompt and output never exceed this.
  token_count end_tokens;
  std::shared_ptr<const sampling_parameters> sampling;
};

/// Tokens of one sequence in this step.
struct sequence_work {
  std::uint32_t sequence = 0;  ///< the scheduler's index
  std::uint32_t slot = 0;      ///< row of the block tables
  request_id request;
  std::uint16_t sample = 0;
  /// Samples wanted after the last token: 0 for an unfinished prefill.
  std::uint16_t samples = 0;
  /// Positions [first_position, first_position + count) are computed.
  token_count first_position;
  token_count count;
  /// Computed and thrown away: a static batch pads prompts to the longest.
  token_count padding;
  /// Tokens that must have a place in the block table after this step.
  token_count hold_tokens;
  /// Blocks before this position's window are released; 0 keeps all.
  token_count window_position;
  /// Offset of its token ids in `tokens`, where ids are known.
  std::uint32_t tokens_begin = 0;
  /// A decode (one generated token) or part of a prefill.
  bool decode = false;
};

/// Blocks of one table that become full in this step: they get names, and where
/// `keys` are given, can be found by others once the step has succeeded.
struct naming_command {
  std::uint32_t sequence = 0;
  std::uint32_t slot = 0;
  std::uint32_t first_block = 0;
  std::uint32_t count = 0;
  /// Offset in `keys`; meaningful where `keyed`.
  std::uint32_t keys_begin = 0;
  bool keyed = false;
};

/// A block and the key of what it holds.
struct keyed_block {
  block_key key;
  block_id block;
  friend bool operator==(const keyed_block&, const keyed_block&) = default;
};

/// A block whose content is to be copied before the step computes.
struct block_copy {
  block_id from;
  block_id to;
};

/// How one block table changes: `dropped` entries leave its front, then
/// `step::new_blocks[begin, +count)` join its end.
struct table_change {
  std::uint32_t slot = 0;
  std::uint32_t group = 0;
  std::uint32_t dropped = 0;
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

/// How a sampled sequence goes on.
enum class finish_kind : std::uint8_t { none, eos, stop_token, stop_string, error };

/// A sequence that ends with this step's token, by the executor's knowledge.
struct sequence_finish {
  std::uint32_t work = 0;  ///< index in `step::work`
  std::uint16_t sample = 0;
  finish_kind kind = finish_kind::none;
  friend bool operator==(const sequence_finish&, const sequence_finish&) = default;
};

/// Natural logarithms of probabilities under the raw logits, of one sampled token.
struct token_logprobs {
  float logprob = 0;
  /// The likeliest, likeliest first, as many as were asked for.
  std::vector<std::pair<token_id, float>> top;
};

enum class step_status : std::uint8_t { ok, failed };

/// What the executor adds. One token per wanted sample; `tokens` holds their
/// ids in the order of `work`, or nothing where ids do not exist (simulation).
struct step_result {
  step_status status = step_status::ok;
  std::vector<sequence_finish> finishes;
  std::vector<token_id> tokens;
  /// Keys of blocks completed by generated tokens, in the order of `work`, where
  /// the executor knows token ids and computes them: (work index, key). Work with
  /// several samples has one key for each of them, in their order, or none.
  std::vector<std::pair<std::uint32_t, block_key>> output_keys;
  /// The text that each token completed, one behind another; `text_ends` is
  /// parallel to `tokens`. Empty where there is no text.
  std::string text;
  std::vector<std::uint32_t> text_ends;
  /// Parallel to `tokens` where a sequence of the step asks for them, else empty.
  std::vector<token_logprobs> logprobs;
};

struct step {
  step_id id;
  micros planned_at;

  // The scheduler's part, in the order in which it is carried out.
  std::vector<release_command> releases;  ///< of sequences that ended
  std::vector<fork_command> forks;
  std::vector<release_command> preemptions;
  std::vector<admission_command> admissions;
  std::vector<block_id> hits;
  std::vector<token_id> admitted_tokens;
  std::vector<sequence_work> work;
  std::vector<token_id> tokens;
  std::vector<naming_command> namings;
  std::vector<block_key> keys;
  /// Free blocks after the commit, by the scheduler's arithmetic.
  block_count expected_free;

  // The block manager's part.
  /// Blocks taken, and which tables they went to; forks stand before work.
  std::vector<block_id> new_blocks;
  std::vector<table_change> table_changes;
  std::vector<block_copy> copies;
  std::vector<block_id> named;  ///< parallel to the blocks of `namings`
  std::vector<keyed_block> evicted;

  // The executor's part.
  step_result result;

  /// Nothing to execute: the block manager answers such a commit itself.
  [[nodiscard]] bool releases_only() const { return work.empty() && copies.empty(); }
  /// Nothing at all: not worth a commit.
  [[nodiscard]] bool empty() const {
    return work.empty() && releases.empty() && preemptions.empty() && forks.empty();
  }

  void clear() {
    id = {};
    releases.clear();
    forks.clear();
    preemptions.clear();
    admissions.clear();
    hits.clear();
    admitted_tokens.clear();
    work.clear();
    tokens.clear();
    namings.clear();
    keys.clear();
    new_blocks.clear();
    table_changes.clear();
    copies.clear();
    named.clear();
    evicted.clear();
    result.status = step_status::ok;
    result.finishes.clear();
    result.tokens.clear();
    result.output_keys.clear();
    result.text.clear();
    result.text_ends.clear();
    result.logprobs.clear();
  }
};

using step_ptr = std::shared_ptr<step>;

/// A question to the prefix cache: for each candidate, which leading blocks are
/// known? It also brings the cache what changed since the last question.
struct match_batch {
  struct candidate {
    std::uint32_t sequence = 0;
    std::uint32_t keys_begin = 0;
    std::uint32_t keys_count = 0;
    /// Offset of the candidate's token ids in `tokens`, where `with_tokens`.
    std::uint32_t tokens_begin = 0;
    bool with_tokens = false;
    // The answer: hits[hits_begin, +hits_count).
    std::uint32_t hits_begin = 0;
    std::uint32_t hits_count = 0;
  };
  struct publication {
    keyed_block entry;
    /// The block's token ids in `tokens`, where `with_tokens`.
    std::uint32_t tokens_begin = 0;
    bool with_tokens = false;
    bool evicted = false;  ///< the entry is gone rather than new
  };

  /// The last step whose result is known: what later ones compute is no hit yet.
  step_id booked;
  std::vector<publication> changes;
  std::vector<candidate> candidates;
  std::vector<block_key> keys;
  std::vector<token_id> tokens;
  std::vector<block_id> hits;

  void clear() {
    changes.clear();
    candidates.clear();
    keys.clear();
    tokens.clear();
    hits.clear();
  }
};

using match_ptr = std::shared_ptr<match_batch>;

}  // namespace octavo
