// What the executor knows of the sequences that hold KV: their block tables and
// tokens, by slot. It follows the plans and decides nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/config.hpp"
#include "core/sampling_parameters.hpp"
#include "core/step.hpp"
#include "core/units.hpp"

namespace octavo::model {

/// Stands for a token that is still to be chosen.
inline constexpr token_id unknown_token = -1;

struct slot {
  std::array<std::vector<block_id>, max_kv_groups> tables;
  /// Logical block that a table's first entry stands for.
  std::array<std::int32_t, max_kv_groups> first{};
  request_id request;
  std::uint16_t sample = 0;
  std::size_t prompt_tokens = 0;
  std::size_t end_tokens = 0;  ///< it ends at so many
  /// Prompt and what was generated; unknown_token where a step that is to choose it runs.
  std::vector<token_id> tokens;
  std::shared_ptr<const sampling_parameters> sampling;
};

class slot_table {
 public:
  explicit slot_table(std::vector<octavo::kv_group> groups) : groups_(std::move(groups)) {}

  /// Applies a plan's releases, forks, admissions and block-table changes.
  void follow(const step& plan);

  [[nodiscard]] slot& at(std::uint32_t index) { return *slots_[index]; }
  [[nodiscard]] const slot& at(std::uint32_t index) const { return *slots_[index]; }
  /// The same for whoever may still need it when the slot is another sequence's.
  [[nodiscard]] const std::shared_ptr<slot>& share(std::uint32_t index) const {
    return slots_[index];
  }

 private:
  slot& open(std::uint32_t index);

  std::vector<octavo::kv_group> groups_;
  std::vector<std::shared_ptr<slot>> slots_;
};

}  // namespace octavo::model
