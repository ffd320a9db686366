// What the kernels of a step read beside weights and KV: token ids, positions, block
// tables and attention plans, laid out on the host once and sent to each rank's device.
//
//   step_plan plan(config, options);
//   plan.prepare(batch);                       // each step, on the host
//   step_arrays arrays(plan);                  // one a rank
//   arrays.upload(plan, stream);
//
// Sizes depend on the limits alone, so that addresses stay.
//
// A group of layers whose tokens take several pool blocks (model/generation/kv_groups.hpp)
// has as many tables; they lie one behind another, and an attention plan of the group
// serves each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/kernels/paged_attention/plan.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/types.hpp"
#include "model/config.hpp"
#include "model/generation/kv_groups.hpp"
#include "model/generation/step_batch.hpp"

namespace octavo::gpu {

struct step_limits {
  int rows_max = 0;       ///< tokens of a step
  int sequences_max = 0;  ///< of a step
  int model_len_max = 0;  ///< tokens of a sequence
  int multiprocessors = 0;
};

/// What is wanted of attention beside the model's shape.
struct attention_choice {
  dtype type = dtype::float16;
  dtype kv_type = dtype::float16;
  bool batch_invariant = false;
};

/// A run of an array that all arrays of a step share.
struct step_section {
  std::size_t offset = 0;  ///< bytes
  std::size_t used = 0;    ///< bytes of this step
};

class step_plan {
 public:
  step_plan(const model::model_config& config, int ranks, const attention_choice& choice,
            const step_limits& limits);

  /// Lays out a step. Valid until the next call, which must not come before the copies
  /// to all devices are done. Where `sources`, parallel to the batch's tokens, is given and
  /// not negative, the token is that one of the tokens that the device chose last. Throws
  /// input_error where a batch exceeds the limits.
  void prepare(const model::decoder_batch& batch, std::span<const std::int32_t> sources = {}) {
    lay_out(batch, sources, 0, 0);
  }

  /// Lays out a step of single tokens, all of whose logits are wanted, as one of more rows,
  /// of which those behind the batch's belong to nobody: the shape of a captured graph.
  void prepare_padded(const model::decoder_batch& batch, int rows,
                      std::span<const std::int32_t> sources = {}) {
    lay_out(batch, sources, rows, rows);
  }

  [[nodiscard]] int multiprocessors() const { return limits_.multiprocessors; }
  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] int sequences() const { return sequences_; }
  [[nodiscard]] int logit_rows() const { return logit_rows_; }
  [[nodiscard]] const attention_shape& shape(std::size_t group) const {
    return groups_[group].shape;
  }
  [[nodiscard]] const plan_capacity& capacity(std::size_t group) const {
    return groups_[group].planner->capacity();
  }
  /// What to launch: of a padded step, as much as any step of its shape can need.
  [[nodiscard]] const plan_counts& counts(std::size_t group) const { return groups_[group].counts; }
  [[nodiscard]] std::size_t groups() const { return groups_.size(); }
  /// Largest of all groups' needs.
  [[nodiscard]] std::size_t attention_workspace_bytes() const;

  /// The arrays' bytes, and where each lies.
  [[nodiscard]] const pinned_array<std::byte>& host() const { return host_; }
  [[nodiscard]] const step_section& tokens() const { return tokens_; }
  [[nodiscard]] const step_section& sources() const { return sources_; }
  [[nodiscard]] const step_section& positions() const { return positions_; }
  [[nodiscard]] const step_section& logit_ids() const { return logit_ids_; }
  [[nodiscard]] const step_section& sequence_of_row() const { return sequence_of_row_; }
  /// Of each sequence, the index in each table of a group of the page of position 0; it may
  /// lie before the table.
  [[nodiscard]] const step_section& sequence_tables(std::size_t group) const {
    return groups_[group].sequence_tables;
  }
  [[nodiscard]] const step_section& plan(std::size_t group) const { return groups_[group].plan; }
  /// Table `block` of a group.
  [[nodiscard]] const step_section& table(std::size_t group, std::size_t block) const {
    return groups_[group].tables[block];
  }
  /// All of the above.
  [[nodiscard]] std::vector<step_section> sections() const;

 private:
  struct layer_group {
    attention_shape shape;
    std::size_t blocks = 1;  ///< tables
    std::optional<attention_planner> planner;
    plan_counts counts;
    step_section plan, sequence_tables;
    std::vector<step_section> tables;
    std::vector<attention_sequence> sequences;
  };

  step_section reserve(std::size_t bytes);
  template <class T>
  T* at(const step_section& section) {
    return reinterpret_cast<T*>(host_.data() + section.offset);
  }
  void check(const model::decoder_batch& batch) const;
  void lay_out(const model::decoder_batch& batch, std::span<const std::int32_t> sources,
               int rows_min, int logit_rows_min);
  void place_rows(const model::decoder_batch& batch, std::span<const std::int32_t> sources);
  void place_tables(const model::decoder_batch& batch, std::size_t number);

  step_limits limits_;
  int rows_ = 0;
  int sequences_ = 0;
  int logit_rows_ = 0;
  std::size_t reserved_ = 0;
  step_section tokens_, sources_, positions_, sequence_of_row_, logit_ids_;
  std::vector<layer_group> groups_;
  pinned_array<std::byte> host_;
};

/// A step's arrays on the current device.
class step_arrays {
 public:
  explicit step_arrays(const step_plan& plan) : memory_(plan.host().size()) {}

  void upload(const step_plan& plan, stream& on);

  [[nodiscard]] const std::byte* bytes(const step_section& section) const {
    return memory_.data() + section.offset;
  }
  [[nodiscard]] const std::int32_t* numbers(const step_section& section) const {
    return reinterpret_cast<const std::int32_t*>(bytes(section));
  }

 private:
  device_array<std::byte> memory_;
};

}  // namespace octavo::gpu
