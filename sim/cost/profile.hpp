// A measured profile: tables of kernel times of one model on one GPU at one
// tensor-parallel degree, in a JSON form of our own, `octavo.profile/1`:
//
//   { "format": "octavo.profile/1", "provenance": "…", "model": "…", "gpu": "…",
//     "tp": 1, "layers": 32, "hidden_size": 4096, "weights": "fp16", "kv": "fp16",
//     "dense": [ {"name": "qkv_proj", "calls": 32, "tokens": [1, 2, …], "us": […]}, … ],
//     "per_sequence": [ {"name": "lm_head", "calls": 1, "sequences": […], "us": […]}, … ],
//     "attention_decode":  {"sequences": […], "context": […], "us": […]},
//     "attention_prefill": {"tokens": […], "context": […], "us": […]},
//     "attention_mixed":   {"prefill_tokens": […], "prefill_context": […],
//                           "decode_sequences": […], "decode_context": […], "us": […]},
//     "skew": {"sequences": […], "alpha_decode": […], "alpha_mixed": […]},
//     "host": {"step_us": 0, "sequence_us": 0} }
//
// Times are microseconds. `us` of a dense or per-sequence operation is one call;
// `calls` says how often a step makes it. Attention is one layer's. Values of
// tables with several axes are flat, the last axis varying fastest. `per_sequence`,
// `attention_mixed`, `skew`, `host`, `weights` and `kv` (fp16) may be absent.
//
// How a step maps to the tables (profile_cost):
//   - dense operations: by all tokens of the step; per-sequence operations: by
//     the sequences that are sampled.
//   - decodes: by their number and mean context. Uneven contexts add
//     alpha x (price at the longest context - price at the mean).
//   - one prefill chunk: by its tokens and context. Of several, the dearest
//     counts whole; each other adds its price less the table's smallest entry (a
//     launch has one floor).
//   - a step with both: attention_mixed with the dearest chunk, the other chunks
//     added as above; without that table, decode and prefill prices are summed.
//   - outside a table: see sim/cost/grid.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats.hpp"
#include "sim/cost/cost_model.hpp"
#include "sim/cost/grid.hpp"

namespace octavo::sim {

/// An operation whose time depends on one count.
struct profile_operation {
  std::string name;
  /// Calls in one step.
  std::int64_t calls = 1;
  /// Time of one call, microseconds, by tokens or by sequences.
  grid<1> us;
};

struct profile {
  std::string provenance;
  std::string model;
  std::string gpu;
  int tp = 1;
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  model::weight_format weights = model::weight_format::fp16;
  model::kv_dtype kv = model::kv_dtype::fp16;
  std::vector<profile_operation> dense;
  std::vector<profile_operation> per_sequence;
  /// By (sequences, context).
  grid<2> attention_decode;
  /// By (tokens, context).
  grid<2> attention_prefill;
  /// By (prefill tokens, prefill context, decode sequences, decode context).
  grid<4> attention_mixed;
  /// Skew corrections by sequences; empty = none.
  grid<1> alpha_decode;
  grid<1> alpha_mixed;
  double host_step_us = 0;
  double host_sequence_us = 0;
};

/// Reads an `octavo.profile/1` text. Throws input_error naming the field.
[[nodiscard]] profile parse_profile(std::string_view text, std::string_view where);

/// Reads a profile file. Throws input_error.
[[nodiscard]] profile read_profile(const std::string& path);

/// The JSON text of a profile, one line per table.
[[nodiscard]] std::string to_json(const profile& source);

/// Prices steps from a profile. Throws input_error where it lacks attention or
/// dense tables.
class profile_cost final : public cost_model {
 public:
  explicit profile_cost(profile source);

  [[nodiscard]] double device_time_us(const step_shape& shape) const override;
  [[nodiscard]] double host_time_us(const step_shape& shape) const override;
  [[nodiscard]] std::string source() const override;
  [[nodiscard]] const profile& tables() const { return profile_; }

 private:
  [[nodiscard]] double attention_us(const step_shape& shape) const;
  [[nodiscard]] double decode_us(const step_shape& shape) const;
  [[nodiscard]] double mixed_us(const step_shape& shape, const prefill_chunk& chunk) const;

  profile profile_;
  /// Sums of all operations by number of tokens and of sequences.
  std::vector<double> dense_us_;
  std::vector<double> per_sequence_us_;
  double prefill_floor_us_ = 0;
};

/// Reads a profile and prices steps from it.
[[nodiscard]] std::unique_ptr<cost_model> load_profile(const std::string& path);

}  // namespace octavo::sim
