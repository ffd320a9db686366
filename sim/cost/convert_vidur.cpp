// Vidur's columns into a profile.
#include <array>
#include <map>

#include "core/error.hpp"
#include "sim/cost/convert.hpp"
#include "sim/cost/csv.hpp"

namespace octavo::sim {
namespace {

constexpr double us_per_ms = 1e3;

std::string median(const std::string& operation) {
  return "time_stats." + operation + ".median";
}

grid<1> make_curve(const std::vector<measured_point<1>>& points, const std::string& what) {
  if (points.empty()) throw input_error(what);
  return make_grid<1>(points).table;
}

/// Dense operations: each once a layer, but the embedding once a step.
std::vector<profile_operation> read_dense(const csv_table& table, const model::model_config& config,
                                          int tp) {
  constexpr std::array names{"input_layernorm",
                             "attn_pre_proj",
                             "attn_rope",
                             "attn_post_proj",
                             "post_attention_layernorm",
                             "mlp_up_proj",
                             "mlp_act",
                             "mlp_down_proj",
                             "add",
                             "emb"};
  const std::size_t tokens = table.column("num_tokens");
  const std::size_t degree = table.column("num_tensor_parallel_workers");
  const std::size_t hidden = table.column("n_embd");
  std::vector<profile_operation> result;
  for (const std::string name : names) {
    // Some versions of the set fuse the residual addition and have no such column.
    if (name == "add" && !table.has(median(name))) continue;
    const std::size_t time = table.column(median(name));
    std::vector<measured_point<1>> points;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const bool wanted = table.number(row, degree) == tp &&
                          table.number(row, hidden) == static_cast<double>(config.hidden_size);
      if (!wanted || table.text(row, time).empty()) continue;
      points.push_back({{table.number(row, tokens)}, table.number(row, time) * us_per_ms});
    }
    grid<1> curve =
        make_curve(points, table.path() + ": no row of " + name + " has n_embd " +
                               std::to_string(config.hidden_size) +
                               " and num_tensor_parallel_workers " + std::to_string(tp));
    result.push_back({name, name == "emb" ? 1 : config.layers, std::move(curve)});
  }
  return result;
}

/// The rows of one model's attention at one tensor-parallel degree.
class attention_rows {
 public:
  attention_rows(const csv_table& table, const model::model_config& config, int tp)
      : table_(table),
        batch_(table.column("batch_size")),
        chunk_(table.column("prefill_chunk_size")),
        context_(table.column("kv_cache_size")) {
    const std::size_t heads = table.column("n_q_head");
    const std::size_t kv_heads = table.column("n_kv_head");
    const std::size_t degree = table.column("num_tensor_parallel_workers");
    for (std::size_t row = 0; row < table.rows(); ++row) {
      if (table.number(row, heads) == static_cast<double>(config.heads) &&
          table.number(row, kv_heads) == static_cast<double>(config.kv_heads) &&
          table.number(row, degree) == tp && even(row)) {
        rows_.push_back(row);
      }
    }
    if (rows_.empty()) {
      throw input_error(table.path() + ": no row has n_q_head " + std::to_string(config.heads) +
                        ", n_kv_head " + std::to_string(config.kv_heads) +
                        " and num_tensor_parallel_workers " + std::to_string(tp));
    }
  }

  [[nodiscard]] grid<2> decode() const {
    std::vector<measured_point<2>> points;
    const std::size_t time = table_.column(median("attn_decode"));
    for (const std::size_t row : rows_) {
      if (table_.number(row, chunk_) != 0 || table_.number(row, time) <= 0) continue;
      points.push_back(
          {{table_.number(row, batch_), table_.number(row, context_)}, time_us(row, time)});
    }
    if (points.empty()) throw input_error(table_.path() + ": no decode rows");
    return make_grid<2>(points).table;
  }

  [[nodiscard]] grid<2> prefill() const {
    std::map<double, std::vector<measured_point<1>>> by_chunk;
    const std::size_t time = table_.column(median("attn_prefill"));
    for (const std::size_t row : rows_) {
      const double chunk = table_.number(row, chunk_);
      if (chunk == 0 || table_.number(row, batch_) != 1 || table_.number(row, time) <= 0) continue;
      by_chunk[chunk].push_back({{table_.number(row, context_)}, time_us(row, time)});
    }
    if (by_chunk.empty()) throw input_error(table_.path() + ": no prefill rows");
    return common_contexts(by_chunk);
  }

 private:
  /// Later versions of the set have uneven batches too; the tables are of even ones.
  [[nodiscard]] bool even(std::size_t row) const {
    return !table_.has("equal_seq_len") ||
           table_.text(row, table_.column("equal_seq_len")) == "True";
  }

  /// Attention with the writing of K and V and the reshapes around it.
  [[nodiscard]] double time_us(std::size_t row, std::size_t kernel) const {
    double ms = table_.number(row, kernel);
    for (const char* part : {"attn_kv_cache_save", "attn_input_reshape", "attn_output_reshape"}) {
      if (table_.has(median(part))) ms += table_.number(row, table_.column(median(part)));
    }
    return ms * us_per_ms;
  }

  static grid<2> common_contexts(const std::map<double, std::vector<measured_point<1>>>& chunks) {
    const std::vector<double> contexts{0, 128, 256, 512, 1024, 1536, 2048, 3072, 4096};
    std::vector<double> tokens;
    std::vector<double> values;
    grid<1> reference;
    double reference_tokens = 1;
    for (const auto& [chunk, points] : chunks) {
      grid<1> own = make_grid<1>(points).table;
      // A curve of fewer contexts does not show how it grows.
      const bool shows_growth = own.values().size() >= 4;
      if (shows_growth) {
        reference = own;
        reference_tokens = chunk;
      }
      if (reference.empty()) continue;
      const double longest = own.axes()[0].points().back();
      tokens.push_back(chunk);
      for (const double context : contexts) {
        const double growth = reference.at({context}) - reference.at({std::min(context, longest)});
        const bool inside = shows_growth || context <= longest;
        values.push_back(inside ? own.at({context})
                                : own.at({longest}) + growth * chunk / reference_tokens);
      }
    }
    return grid<2>{{grid_axis{std::move(tokens)}, grid_axis{contexts}}, std::move(values)};
  }

  const csv_table& table_;
  std::size_t batch_;
  std::size_t chunk_;
  std::size_t context_;
  std::vector<std::size_t> rows_;
};

profile_operation read_all_reduce(const std::string& path, const model::model_config& config,
                                  int tp) {
  const csv_table table{path};
  const std::size_t time = table.column(median("all_reduce"));
  const std::size_t workers = table.column("num_workers");
  const std::size_t per_node = table.column("devices_per_node");
  const std::size_t size = table.column("size");
  const auto bytes_per_token = static_cast<double>(2 * config.hidden_size);
  std::vector<measured_point<1>> points;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.number(row, workers) != tp || table.number(row, per_node) != tp) continue;
    points.push_back(
        {{table.number(row, size) / bytes_per_token}, table.number(row, time) * us_per_ms});
  }
  return {"all_reduce", 2 * config.layers,
          make_curve(points,
                     path + ": no row has num_workers and devices_per_node " + std::to_string(tp))};
}

}  // namespace

profile convert_vidur(const std::string& mlp_csv, const std::string& attention_csv,
                      const model::model_config& config, int tp, const std::string& gpu,
                      const std::string& all_reduce_csv) {
  if (tp > 1 && all_reduce_csv.empty()) {
    throw input_error("tensor parallel size " + std::to_string(tp) +
                      " needs a table of all-reduce times");
  }
  const csv_table attention{attention_csv};
  const attention_rows rows{attention, config, tp};
  profile result;
  result.provenance = "converted from Vidur-style tables; no output head and no sampling";
  result.model = config.name;
  result.gpu = gpu;
  result.tp = tp;
  result.layers = config.layers;
  result.hidden_size = config.hidden_size;
  result.dense = read_dense(csv_table{mlp_csv}, config, tp);
  if (tp > 1) result.dense.push_back(read_all_reduce(all_reduce_csv, config, tp));
  result.attention_decode = rows.decode();
  result.attention_prefill = rows.prefill();
  return result;
}

}  // namespace octavo::sim
