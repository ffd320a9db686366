// Prices of steps from a measured profile.
#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "sim/cost/profile.hpp"

namespace octavo::sim {
namespace {

// Beyond these sizes a price is computed when asked for.
constexpr std::size_t table_tokens = 4096;
constexpr std::size_t table_sequences = 1024;

double sum_us(const std::vector<profile_operation>& operations, double count) {
  if (count <= 0) return 0;
  double total = 0;
  for (const profile_operation& operation : operations) {
    total += static_cast<double>(operation.calls) * operation.us.at({count});
  }
  return total;
}

std::vector<double> tabulate(const std::vector<profile_operation>& operations, std::size_t last) {
  std::vector<double> table;
  for (std::size_t count = 0; count <= last; ++count) {
    table.push_back(sum_us(operations, static_cast<double>(count)));
  }
  return table;
}

double look_up(const std::vector<double>& table, const std::vector<profile_operation>& operations,
               std::int64_t count) {
  const auto index = static_cast<std::size_t>(count);
  return index < table.size() ? table[index] : sum_us(operations, static_cast<double>(count));
}

}  // namespace

profile_cost::profile_cost(profile source) : profile_(std::move(source)) {
  if (profile_.dense.empty() || profile_.attention_decode.empty() ||
      profile_.attention_prefill.empty()) {
    throw input_error("profile of " + profile_.model +
                      ": dense, attention_decode and attention_prefill tables are needed");
  }
  dense_us_ = tabulate(profile_.dense, table_tokens);
  per_sequence_us_ = tabulate(profile_.per_sequence, table_sequences);
  const std::vector<double>& prefill = profile_.attention_prefill.values();
  prefill_floor_us_ = *std::min_element(prefill.begin(), prefill.end());
}

double profile_cost::decode_us(const step_shape& shape) const {
  const auto count = static_cast<double>(shape.decode_sequences);
  const double mean_context = static_cast<double>(shape.decode_context) / count;
  const double mean = profile_.attention_decode.at({count, mean_context});
  const auto longest_context = static_cast<double>(shape.decode_context_max);
  if (profile_.alpha_decode.empty() || longest_context <= mean_context) return mean;
  const double longest = profile_.attention_decode.at({count, longest_context});
  return mean + profile_.alpha_decode.at({count}) * std::max(0.0, longest - mean);
}

double profile_cost::mixed_us(const step_shape& shape, const prefill_chunk& chunk) const {
  const auto count = static_cast<double>(shape.decode_sequences);
  const double mean_context = static_cast<double>(shape.decode_context) / count;
  const auto tokens = static_cast<double>(chunk.tokens);
  const auto context = static_cast<double>(chunk.context);
  const grid<4>& table = profile_.attention_mixed;
  const double mean = table.at({tokens, context, count, mean_context});
  const auto longest_context = static_cast<double>(shape.decode_context_max);
  if (profile_.alpha_mixed.empty() || longest_context <= mean_context) return mean;
  const double longest = table.at({tokens, context, count, longest_context});
  return mean + profile_.alpha_mixed.at({count}) * std::max(0.0, longest - mean);
}

double profile_cost::attention_us(const step_shape& shape) const {
  double others = 0;
  double dearest = 0;
  prefill_chunk dearest_chunk;
  for (const prefill_chunk& chunk : shape.chunks) {
    if (chunk.tokens == 0) continue;
    const double us = profile_.attention_prefill.at(
        {static_cast<double>(chunk.tokens), static_cast<double>(chunk.context)});
    others += us - prefill_floor_us_;
    if (us > dearest) {
      dearest = us;
      dearest_chunk = chunk;
    }
  }
  if (dearest == 0) return shape.decode_sequences > 0 ? decode_us(shape) : 0;
  others -= dearest - prefill_floor_us_;
  if (shape.decode_sequences == 0) return dearest + others;
  if (profile_.attention_mixed.empty()) return dearest + others + decode_us(shape);
  return mixed_us(shape, dearest_chunk) + others;
}

double profile_cost::device_time_us(const step_shape& shape) const {
  return look_up(dense_us_, profile_.dense, shape.tokens()) +
         look_up(per_sequence_us_, profile_.per_sequence, shape.sampled_sequences) +
         static_cast<double>(profile_.layers) * attention_us(shape);
}

double profile_cost::host_time_us(const step_shape& shape) const {
  const auto sequences =
      static_cast<double>(shape.decode_sequences + static_cast<std::int64_t>(shape.chunks.size()));
  return profile_.host_step_us + profile_.host_sequence_us * sequences;
}

std::string profile_cost::source() const {
  return "profile (" + profile_.model + " on " + profile_.gpu + ", tp " +
         std::to_string(profile_.tp) + ": " + profile_.provenance + ")";
}

std::unique_ptr<cost_model> load_profile(const std::string& path) {
  return std::make_unique<profile_cost>(read_profile(path));
}

}  // namespace octavo::sim
