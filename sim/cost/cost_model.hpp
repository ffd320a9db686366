// What a step costs: the interface between the simulated executor and the three
// sources of prices (roofline, measured profile, constant).
//
// A price is a pure function of a step's aggregates, so pricing a step costs
// O(prefill chunks), never O(batch).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace octavo::sim {

/// A prefill chunk: `tokens` new tokens of one prompt behind `context` tokens
/// whose KV is already there.
struct prefill_chunk {
  std::int64_t tokens = 0;
  std::int64_t context = 0;
};

/// A step's aggregates. Padding of static batching is counted as tokens.
struct step_shape {
  /// One entry per sequence that prefills in this step.
  std::span<const prefill_chunk> chunks{};
  /// Σ chunks' tokens.
  std::int64_t prefill_tokens = 0;
  /// Sequences that decode, one token each.
  std::int64_t decode_sequences = 0;
  /// Σ over decoding sequences of the tokens their attention reads.
  std::int64_t decode_context = 0;
  /// The longest such context, for kernels that wait for the longest.
  std::int64_t decode_context_max = 0;
  /// Sequences whose logits are computed and sampled in this step.
  std::int64_t sampled_sequences = 0;

  [[nodiscard]] std::int64_t tokens() const { return prefill_tokens + decode_sequences; }
};

/// Prices steps. Implementations are immutable and thread-compatible.
class cost_model {
 public:
  virtual ~cost_model() = default;

  /// Time the device is busy with the step, in microseconds.
  [[nodiscard]] virtual double device_time_us(const step_shape& shape) const = 0;

  /// Time the host needs to plan and launch one step, in microseconds. With
  /// run-ahead 0 it adds to the device's time; with run-ahead 1 they overlap.
  [[nodiscard]] virtual double host_time_us(const step_shape& shape) const = 0;

  /// Which source priced the run, for the report: "roofline (h100)", …
  [[nodiscard]] virtual std::string source() const = 0;
};

}  // namespace octavo::sim
