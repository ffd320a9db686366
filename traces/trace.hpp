// A request trace in memory: what arrives when, how long its prompt is, and how
// many tokens it will generate. Compact (a million requests in some 64 MB) and
// free of text: prompts are lengths and, where the trace knows them, chained
// block ids that say which prefixes are equal.
//
// Readers of the formats people hold are in reader.hpp; synth.hpp makes traces.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace octavo::traces {

/// Marks an absent index (no session, no tenant, not after another request).
inline constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// One request of a trace.
struct request {
  /// Arrival from the start of the trace. Ignored where `after` is set.
  micros arrival;
  token_count prompt_tokens;
  /// Tokens that the model generates. An executor knows it, a scheduler never.
  token_count output_tokens;
  /// The client's limit; 0 where the trace gives none.
  token_count max_tokens;
  /// Lower is more urgent, as in vLLM.
  std::int32_t priority = 0;
  /// `trace::prefix_ids[prefix_begin, prefix_begin + prefix_count)`: ids of the
  /// prompt's blocks of `trace::prefix_block` tokens, chained: equal ids mean
  /// equal content *and* equal content before. The last may be a partial block.
  std::uint32_t prefix_begin = 0;
  std::uint32_t prefix_count = 0;
  /// Arrives `delay` after request number `after` of this trace has finished.
  std::uint32_t after = none;
  micros delay;
  /// The client cancels this long after arrival; negative: never.
  micros cancel{-1};
  /// Indices into `trace::names`.
  std::uint32_t tenant = none;
  std::uint32_t session = none;
};

/// A whole trace, in file order (by arrival where the file was not; see `notes`).
struct trace {
  std::vector<request> requests;
  std::vector<std::uint64_t> prefix_ids;
  /// Tokens a prefix id stands for; 0 where the trace has no prefix ids.
  token_count prefix_block;
  /// Requests' own names, by request; empty where they are just 0, 1, 2 …
  std::vector<std::string> ids;
  /// Tenants' and sessions' names.
  std::vector<std::string> names;
  /// Recognised format, for the report: "azure-csv", "mooncake-jsonl", …
  std::string format;
  /// What the reader assumed, left out or reordered; one sentence each.
  std::vector<std::string> notes;

  [[nodiscard]] std::span<const std::uint64_t> prefix_of(const request& r) const {
    return {prefix_ids.data() + r.prefix_begin, r.prefix_count};
  }
  /// The name of request number `index`: the trace's own, else its number.
  [[nodiscard]] std::string name_of(std::uint32_t index) const {
    return ids.empty() ? std::to_string(index) : ids[index];
  }
};

}  // namespace octavo::traces
