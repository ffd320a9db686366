// Prices steps from first principles: the kernels of one transformer layer,
// times the layers, plus embedding, output head, sampling and collectives.
//
// Everything that depends on the number of tokens alone is tabulated once, so
// that pricing a decode step costs a few arithmetic operations.
//
// Engine modelled: kernels of one step run back to back (CUDA graphs), with
// fused QKV and gate-up projections and fused residual norms. Prefill and decode
// attention are two launches. Contexts enter by their sum: a batch of uneven
// contexts is priced as an even one, which kernels that cut long contexts come
// near to.
#pragma once

#include <string>
#include <vector>

#include "model/config.hpp"
#include "model/formats.hpp"
#include "sim/catalogue/gpu.hpp"
#include "sim/cost/cost_model.hpp"
#include "sim/cost/kernels.hpp"

namespace octavo::sim {

/// Where a step's device time goes, microseconds, all layers together.
struct step_breakdown {
  double projections = 0;
  double mlp = 0;
  double attention_prefill = 0;
  double attention_decode = 0;
  double elementwise = 0;
  double all_reduce = 0;
  double head = 0;
  double sampling = 0;

  [[nodiscard]] double total() const {
    return projections + mlp + attention_prefill + attention_decode + elementwise + all_reduce +
           head + sampling;
  }
};

/// What the roofline prices.
struct roofline_setup {
  model::model_config config;
  gpu_spec gpu;
  int tp = 1;
  model::weight_format weights = model::weight_format::fp16;
  model::kv_dtype kv = model::kv_dtype::fp16;
  /// Host time of every step, and of each sequence in it.
  double host_step_us = 0;
  double host_sequence_us = 0;
};

class roofline_cost final : public cost_model {
 public:
  /// Throws infeasible_error where `tp` does not divide the model.
  explicit roofline_cost(roofline_setup setup);

  [[nodiscard]] double device_time_us(const step_shape& shape) const override;
  [[nodiscard]] double host_time_us(const step_shape& shape) const override;
  [[nodiscard]] std::string source() const override;

  /// The same price, taken apart. Not for hot paths.
  [[nodiscard]] step_breakdown breakdown(const step_shape& shape) const;

 private:
  void add_dense(std::int64_t tokens, step_breakdown& parts) const;
  void add_sampling(std::int64_t sequences, step_breakdown& parts) const;
  [[nodiscard]] double dense_us(std::int64_t tokens) const;
  [[nodiscard]] double sampling_us(std::int64_t sequences) const;
  [[nodiscard]] double decode_us(const step_shape& shape) const;
  [[nodiscard]] double prefill_us(const step_shape& shape) const;

  roofline_setup setup_;
  gemm_rates rates_;
  gemm_rates head_rates_;
  attention_shape full_;
  attention_shape sliding_;
  double full_layers_ = 0;
  double sliding_layers_ = 0;
  /// Price by number of tokens, and by number of sampled sequences.
  std::vector<double> dense_table_us_;
  std::vector<double> sampling_table_us_;
};

}  // namespace octavo::sim
