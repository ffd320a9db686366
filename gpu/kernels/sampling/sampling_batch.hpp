// Turns the parameters of a step's requests into what sampling.hpp takes.
//
//   sampling_batch batch(limits);                 // once
//   batch.clear();                                // each step
//   batch.add(request.how, {...});                // for each row, in order
//   copy batch.rows(), .biases(), .tokens() to the device; sample({...});
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sampling_parameters.hpp"
#include "gpu/kernels/sampling/sampling.hpp"

namespace octavo::gpu {

/// Room on the device for a step's rows and lists.
struct sampling_limits {
  int rows = 0;
  int biases = 0;
  int tokens = 0;
};

/// What a row's choice depends on beside its logits; as model::sampling_state.
struct sampling_request {
  std::uint64_t seed = 0;
  /// Tokens chosen before; they need not be known to the host yet.
  std::uint64_t output_tokens = 0;
  /// Tokens at which generation ends; masked before min_tokens.
  std::span<const token_id> end_tokens;
  /// The request's slot of the token history; needed where needs_history().
  int history = -1;
};

class sampling_batch {
 public:
  explicit sampling_batch(const sampling_limits& limits);

  /// Do penalties need the tokens of prompt and output?
  [[nodiscard]] static bool needs_history(const sampling_parameters& how);

  void clear();

  /// Adds a row. Throws input_error naming the limit that does not suffice or the field
  /// that cannot be used; the batch is then as it was.
  void add(const sampling_parameters& how, const sampling_request& request);

  [[nodiscard]] std::span<const sampling_row> rows() const { return rows_; }
  [[nodiscard]] std::span<const token_bias> biases() const { return biases_; }
  [[nodiscard]] std::span<const std::int32_t> tokens() const { return tokens_; }
  [[nodiscard]] bool any_draws() const { return any_draws_; }
  [[nodiscard]] int top_max() const { return top_max_; }

 private:
  list_range add_tokens(std::vector<std::int32_t> list);

  sampling_limits limits_;
  std::vector<sampling_row> rows_;
  std::vector<token_bias> biases_;
  std::vector<std::int32_t> tokens_;
  bool any_draws_ = false;
  int top_max_ = 0;
};

}  // namespace octavo::gpu
