// How a trace becomes traffic: options of the source, and the pure part of it
// that turns a trace's request into what a client would submit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/block_key.hpp"
#include "core/config.hpp"
#include "core/request.hpp"
#include "sim/world/simulated_executor.hpp"
#include "traces/trace.hpp"

namespace octavo::sim {

/// The client's limit of generated tokens, where the trace gives none.
enum class assumed_limit : std::uint8_t {
  context,  ///< up to the model's length, as chat clients that set none
  exact,    ///< what will be generated: an oracle, no real client knows it
  fixed,    ///< `fixed_tokens`
};

struct workload_options {
  /// Arrivals come this many times as fast.
  double rate_scale = 1;
  /// Only the first so many; 0: all.
  std::uint32_t requests = 0;
  /// Closed loop: so many requests are always outstanding; 0: arrivals as traced.
  std::uint32_t concurrency = 0;
  /// Requests before this number run but are left out of the statistics.
  std::uint32_t warmup = 0;
  assumed_limit limit = assumed_limit::context;
  token_count fixed_tokens;
};

/// The requests of a trace as a client would make them. Request number i of the
/// trace is request_id i.
class workload {
 public:
  workload(std::shared_ptr<const traces::trace> trace, const workload_options& options,
           const engine_config& engine);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] const traces::trace& trace() const { return *trace_; }
  [[nodiscard]] const workload_options& options() const { return options_; }
  /// When request `index` arrives by itself, on the scaled clock; think times and
  /// cancellations do not scale.
  [[nodiscard]] micros arrival(std::uint32_t index) const;
  /// What the client submits, with the keys of the blocks that the trace knows: its
  /// prompt's, and those of its answer where a later turn's prompt holds it.
  [[nodiscard]] request_spec spec_of(std::uint32_t index) const;
  /// Requests that arrive after `index` has finished.
  [[nodiscard]] std::vector<std::uint32_t> followers_of(std::uint32_t index) const;
  [[nodiscard]] std::shared_ptr<const output_oracle> oracle() const { return oracle_; }

 private:
  void check_span() const;
  [[nodiscard]] token_count limit_of(const traces::request& r) const;
  [[nodiscard]] bool continues(const traces::request& r, const traces::request& later) const;
  void add_keys(const traces::request& r, std::int32_t from_block, std::int32_t to_block,
                std::vector<block_key>& keys) const;

  std::shared_ptr<const traces::trace> trace_;
  workload_options options_;
  token_count block_size_;
  token_count max_model_len_;
  bool keyed_ = false;
  std::uint32_t size_ = 0;
  block_hasher hasher_;
  block_key scope_;
  std::shared_ptr<const output_oracle> oracle_;
  /// (before, after) pairs, sorted; empty where the trace has none.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> followers_;
};

}  // namespace octavo::sim
