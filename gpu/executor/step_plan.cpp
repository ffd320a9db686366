// A step's arrays: see step_plan.hpp.
#include "gpu/executor/step_plan.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace octavo::gpu {
namespace {

/// Arrays begin at multiples of it.
constexpr std::size_t alignment = 256;

void check_limit(const char* field, std::size_t value, int most) {
  if (value <= static_cast<std::size_t>(most)) return;
  throw input_error(std::string("batch.") + field + " is " + std::to_string(value) + "; at most " +
                    std::to_string(most) + " fit a step");
}

attention_shape shape_of(const model::model_config& config, int ranks,
                         const attention_choice& choice, const octavo::kv_group& group) {
  attention_shape shape;
  shape.heads = static_cast<int>(config.heads) / ranks;
  shape.kv_heads = static_cast<int>(model::kv_heads_per_gpu(config, ranks));
  shape.head_dim = static_cast<int>(config.head_dim);
  shape.type = choice.type;
  shape.kv_type = choice.kv_type;
  shape.window = group.window.raw();
  shape.batch_invariant = choice.batch_invariant;
  return shape;
}

}  // namespace

step_plan::step_plan(const model::model_config& config, int ranks, const attention_choice& choice,
                     const step_limits& limits)
    : limits_(limits) {
  const auto rows = static_cast<std::size_t>(limits.rows_max);
  tokens_ = reserve(rows * sizeof(std::int32_t));
  sources_ = reserve(rows * sizeof(std::int32_t));
  positions_ = reserve(rows * sizeof(std::int32_t));
  sequence_of_row_ = reserve(rows * sizeof(std::int32_t));
  logit_ids_ = reserve(rows * sizeof(std::int32_t));
  const auto entries = static_cast<std::size_t>(limits.sequences_max) *
                       static_cast<std::size_t>(limits.model_len_max / kv_page_tokens + 2);
  for (const octavo::kv_group& of : model::engine_kv_groups(config, kv_page_tokens)) {
    layer_group g;
    g.shape = shape_of(config, ranks, choice, of);
    g.blocks = static_cast<std::size_t>(of.pool_blocks);
    g.planner.emplace(
        g.shape, attention_limits{limits.sequences_max, limits.rows_max, limits.multiprocessors});
    g.plan = reserve(g.planner->capacity().bytes());
    g.plan.used = g.planner->capacity().bytes();
    g.sequence_tables =
        reserve(static_cast<std::size_t>(limits.sequences_max) * sizeof(std::int32_t));
    for (std::size_t block = 0; block < g.blocks; ++block) {
      g.tables.push_back(reserve(entries * sizeof(std::int32_t)));
    }
    groups_.push_back(std::move(g));
  }
  host_ = pinned_array<std::byte>(reserved_);
}

step_section step_plan::reserve(std::size_t bytes) {
  const step_section section{reserved_, 0};
  reserved_ += (bytes + alignment - 1) / alignment * alignment;
  return section;
}

std::size_t step_plan::attention_workspace_bytes() const {
  std::size_t most = 0;
  for (const layer_group& g : groups_) {
    most = std::max(most, workspace_bytes(g.shape, g.planner->capacity()));
  }
  return most;
}

std::vector<step_section> step_plan::sections() const {
  std::vector<step_section> all{tokens_, sources_, positions_, sequence_of_row_, logit_ids_};
  for (const layer_group& g : groups_) {
    all.push_back(g.plan);
    all.push_back(g.sequence_tables);
    all.insert(all.end(), g.tables.begin(), g.tables.end());
  }
  return all;
}

void step_plan::check(const model::decoder_batch& batch) const {
  check_limit("tokens", batch.tokens.size(), limits_.rows_max);
  check_limit("sequences", batch.sequences.size(), limits_.sequences_max);
  for (const model::batch_sequence& s : batch.sequences) {
    check_limit("sequences.first_position + rows",
                static_cast<std::size_t>(s.first_position) + s.rows, limits_.model_len_max);
  }
}

void step_plan::lay_out(const model::decoder_batch& batch, std::span<const std::int32_t> sources,
                        int rows_min, int logit_rows_min) {
  check(batch);
  rows_ = std::max(static_cast<int>(batch.tokens.size()), rows_min);
  sequences_ = static_cast<int>(batch.sequences.size());
  logit_rows_ = std::max(static_cast<int>(batch.logit_rows.size()), logit_rows_min);
  check_limit("rows", static_cast<std::size_t>(rows_), limits_.rows_max);
  place_rows(batch, sources);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    place_tables(batch, g);
    layer_group& of = groups_[g];
    of.counts = of.planner->plan(of.sequences, {host_.data() + of.plan.offset, of.plan.used});
    if (rows_min == 0) continue;
    // Single tokens are narrow, unless heads do not fit: then the graph has both.
    const int wide = of.counts.wide > 0 ? of.planner->capacity().wide : 0;
    of.counts = {of.planner->capacity().narrow, wide, of.planner->capacity().merges};
  }
}

void step_plan::place_rows(const model::decoder_batch& batch,
                           std::span<const std::int32_t> sources) {
  const auto rows = static_cast<std::size_t>(rows_);
  for (step_section* by_row : {&tokens_, &sources_, &positions_, &sequence_of_row_}) {
    by_row->used = rows * sizeof(std::int32_t);
  }
  logit_ids_.used = static_cast<std::size_t>(logit_rows_) * sizeof(std::int32_t);
  auto* tokens = at<std::int32_t>(tokens_);
  auto* positions = at<std::int32_t>(positions_);
  auto* sequence_of_row = at<std::int32_t>(sequence_of_row_);
  auto* logit_ids = at<std::int32_t>(logit_ids_);
  std::fill_n(tokens, rows, 0);
  std::fill_n(at<std::int32_t>(sources_), rows, -1);
  std::fill_n(positions, rows, 0);
  std::fill_n(sequence_of_row, rows, -1);
  std::fill_n(logit_ids, logit_rows_, -1);
  std::ranges::copy(batch.tokens, tokens);
  std::ranges::copy(sources, at<std::int32_t>(sources_));
  std::ranges::copy(batch.logit_rows, logit_ids);
  for (std::size_t which = 0; which < batch.sequences.size(); ++which) {
    const model::batch_sequence& s = batch.sequences[which];
    for (std::uint32_t i = 0; i < s.rows; ++i) {
      positions[s.first_row + i] = s.first_position + static_cast<std::int32_t>(i);
      sequence_of_row[s.first_row + i] = static_cast<std::int32_t>(which);
    }
  }
}

// The pages that the step's tokens see, sequence by sequence, the same entry for the
// same tokens in all tables of the group.
void step_plan::place_tables(const model::decoder_batch& batch, std::size_t number) {
  layer_group& of = groups_[number];
  of.sequences.clear();
  auto* sequence_tables = at<std::int32_t>(of.sequence_tables);
  std::int32_t next = 0;
  for (const model::batch_sequence& s : batch.sequences) {
    const auto& table = s.where->tables[number];
    const std::int32_t first = s.where->first[number];
    const auto rows = static_cast<std::int32_t>(s.rows);
    const std::int32_t count = (s.first_position + rows - 1) / kv_page_tokens + 1 - first;
    of.sequences.push_back(
        {static_cast<int>(s.first_row), rows, s.first_position, next, static_cast<int>(first)});
    for (std::size_t block = 0; block < of.blocks; ++block) {
      auto* to = at<std::int32_t>(of.tables[block]) + next;
      for (std::int32_t i = 0; i < count; ++i) {
        const std::size_t entry = static_cast<std::size_t>(i) * of.blocks + block;
        to[i] = static_cast<std::int32_t>(table[entry].raw());
      }
    }
    *sequence_tables++ = next - first;
    next += count;
  }
  of.sequence_tables.used = batch.sequences.size() * sizeof(std::int32_t);
  for (step_section& table : of.tables) {
    table.used = static_cast<std::size_t>(next) * sizeof(std::int32_t);
  }
}

void step_arrays::upload(const step_plan& plan, stream& on) {
  for (const step_section& section : plan.sections()) {
    if (section.used == 0) continue;
    copy_to_device(on, memory_.data() + section.offset, plan.host().data() + section.offset,
                   section.used);
  }
}

}  // namespace octavo::gpu
