// LLMServingSim's layerwise tables into a profile.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>

#include "core/error.hpp"
#include "sim/cost/convert.hpp"
#include "sim/cost/csv.hpp"

namespace octavo::sim {
namespace {

struct layer_calls {
  const char* name;
  std::int64_t in_layer;
  std::int64_t in_step;
};

constexpr std::array dense_layers{
    layer_calls{"layernorm", 2, 0},      layer_calls{"qkv_proj", 1, 0},
    layer_calls{"rotary_emb", 1, 0},     layer_calls{"o_proj", 1, 0},
    layer_calls{"gate_up_proj", 1, 0},   layer_calls{"act_fn", 1, 0},
    layer_calls{"down_proj", 1, 0},      layer_calls{"embedding", 0, 1},
    layer_calls{"final_layernorm", 0, 1}};
constexpr std::array sequence_layers{layer_calls{"lm_head", 0, 1}, layer_calls{"sampler", 0, 1}};

/// Curves of all layers of a table; every layer must be one of `known`, and the
/// other way round, so that nothing is left out of the sum in silence.
template <std::size_t N>
std::vector<profile_operation> read_layers(const csv_table& table, const char* axis,
                                           const std::array<layer_calls, N>& known,
                                           std::int64_t layers) {
  const std::size_t name = table.column("layer");
  const std::size_t count = table.column(axis);
  const std::size_t time = table.column("time_us");
  std::map<std::string, std::vector<measured_point<1>>, std::less<>> curves;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    curves[std::string{table.text(row, name)}].push_back(
        {{table.number(row, count)}, table.number(row, time)});
  }
  std::vector<profile_operation> result;
  for (const layer_calls& layer : known) {
    const auto found = curves.find(layer.name);
    if (found == curves.end()) {
      throw input_error(table.path() + ": no rows of layer \"" + layer.name + "\"");
    }
    result.push_back(
        {layer.name, layer.in_layer * layers + layer.in_step, make_grid<1>(found->second).table});
    curves.erase(found);
  }
  if (!curves.empty()) {
    throw input_error(table.path() + ": layer \"" + curves.begin()->first +
                      "\" is unknown; how often a step calls it cannot be said");
  }
  return result;
}

/// Sorts the attention rows into decode, prefill and mixed tables.
void read_attention(const csv_table& table, profile& result) {
  const std::size_t chunk = table.column("prefill_chunk");
  const std::size_t context = table.column("kv_prefill");
  const std::size_t decodes = table.column("n_decode");
  const std::size_t decode_context = table.column("kv_decode");
  const std::size_t time = table.column("time_us");
  std::vector<measured_point<2>> decode;
  std::vector<measured_point<2>> prefill;
  std::vector<measured_point<4>> mixed;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double pc = table.number(row, chunk);
    const double kp = table.number(row, context);
    const double n = table.number(row, decodes);
    const double kd = table.number(row, decode_context);
    const double us = table.number(row, time);
    if (pc > 0 && n > 0) {
      mixed.push_back({{pc, kp, n, kd}, us});
    } else if (pc > 0) {
      prefill.push_back({{pc, kp}, us});
    } else if (n > 0) {
      decode.push_back({{n, kd}, us});
    }
  }
  if (decode.empty() || prefill.empty()) {
    throw input_error(table.path() + ": rows with decodes alone and with prefill alone are needed");
  }
  auto decode_grid = make_grid<2>(decode);
  auto prefill_grid = make_grid<2>(prefill);
  auto mixed_grid = make_grid<4>(mixed);
  const auto note = [&](std::size_t count, const std::string& what) {
    if (count > 0) result.provenance += "; " + std::to_string(count) + " attention " + what;
  };
  note(decode_grid.points_filled + prefill_grid.points_filled + mixed_grid.points_filled,
       "points interpolated between two sweeps");
  note(decode_grid.points_dropped + prefill_grid.points_dropped + mixed_grid.points_dropped,
       "rows outside a complete grid left out");
  result.attention_decode = std::move(decode_grid.table);
  result.attention_prefill = std::move(prefill_grid.table);
  result.attention_mixed = std::move(mixed_grid.table);
}

/// The number in a label such as "n<=128"; 0 for "n>256".
double label_limit(std::string_view label) {
  const std::size_t at = label.find("<=");
  if (at == std::string_view::npos) return 0;
  double value = 0;
  std::from_chars(label.data() + at + 2, label.data() + label.size(), value);
  return value;
}

void read_skew(const csv_table& table, profile& result) {
  const std::size_t chunk = table.column("pc");
  const std::size_t count = table.column("n_label");
  const std::size_t rate = table.column("skew_rate_label");
  const std::size_t alpha = table.column("alpha");
  const std::size_t samples = table.column("n_samples");
  struct sums {
    double weighted = 0;
    double weight = 0;
  };
  std::map<double, std::array<sums, 2>> by_count;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double n = label_limit(table.text(row, count));
    // Batches in which nearly all are long are not skewed.
    if (n == 0 || table.text(row, rate) == "sr>70%") continue;
    sums& target = by_count[n][table.number(row, chunk) > 0 ? 1 : 0];
    const double weight = table.number(row, samples);
    target.weighted += weight * table.number(row, alpha);
    target.weight += weight;
  }
  std::vector<double> points;
  std::array<std::vector<double>, 2> alphas;
  for (const auto& [n, kinds] : by_count) {
    points.push_back(n);
    for (std::size_t kind = 0; kind < 2; ++kind) {
      const double mean = kinds[kind].weight > 0 ? kinds[kind].weighted / kinds[kind].weight : 0;
      alphas[kind].push_back(std::clamp(mean, 0.0, 1.0));
    }
  }
  if (points.empty()) return;
  // A last point of its own value keeps larger batches from a line that overshoots.
  points.push_back(points.back() * 2);
  for (auto& list : alphas) list.push_back(list.back());
  result.alpha_decode = grid<1>{{grid_axis{points}}, alphas[0]};
  result.alpha_mixed = grid<1>{{grid_axis{points}}, alphas[1]};
}

}  // namespace

profile convert_llmservingsim(const std::string& prefix, const model::model_config& config, int tp,
                              const std::string& gpu) {
  if (tp != 1) {
    throw input_error(
        "LLMServingSim's tables have no measured collectives: only tp 1 can be "
        "converted, got " +
        std::to_string(tp));
  }
  const bool folder = std::filesystem::is_directory(prefix);
  const std::string base = folder ? prefix + "/" : prefix + "_";
  profile result;
  result.provenance = "converted from LLMServingSim's layerwise vLLM tables";
  result.model = config.name;
  result.gpu = gpu;
  result.tp = tp;
  result.layers = config.layers;
  result.hidden_size = config.hidden_size;
  result.dense = read_layers(csv_table{base + "dense.csv"}, "tokens", dense_layers, config.layers);
  result.per_sequence = read_layers(csv_table{base + "per_sequence.csv"}, "sequences",
                                    sequence_layers, config.layers);
  read_attention(csv_table{base + "attention.csv"}, result);
  if (std::filesystem::exists(base + "skew_fit.csv")) {
    read_skew(csv_table{base + "skew_fit.csv"}, result);
  }
  return result;
}

}  // namespace octavo::sim
