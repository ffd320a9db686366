// The roofline against measured tables, by operation and GPU: how many rows, the
// median error and the 90th percentile. Public sets calibrated it (aiconfigurator:
// A100, H100, H200; Vidur: A100, H100; LLMServingSim: the two RTX cards); rows marked
// "check" were not used, and come from other kernels or whole engines.
//
// Shapes: all rows of a table, except where a column says otherwise. Matrices
// narrower than 512 and attention with fewer than four heads are left out: no
// model in the catalogue has them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/catalogue/catalogue.hpp"
#include "sim/cost/csv.hpp"
#include "sim/cost/kernels.hpp"
#include "sim/cost/roofline.hpp"

namespace {

using namespace octavo;
using namespace octavo::sim;

const std::string root = std::string{OCTAVO_SHARED_DIR} + "/profiles/";

struct report_row {
  std::string gpu;
  std::string operation;
  std::string table;
  std::vector<double> ratios;
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::lround(q * last))];
}

class report {
 public:
  void print(const report_row& row) {
    if (row.ratios.empty()) return;
    std::vector<double> errors;
    for (const double ratio : row.ratios) errors.push_back(std::abs(ratio - 1));
    const double median = quantile(errors, 0.5);
    const double p90 = quantile(errors, 0.9);
    const bool good = median <= 0.15 && p90 <= 0.35;
    std::printf("%-13s %-20s %-22s %6zu %8.1f %8.1f %8.2f  %s\n", row.gpu.c_str(),
                row.operation.c_str(), row.table.c_str(), row.ratios.size(), 100 * median,
                100 * p90, quantile(row.ratios, 0.5), good ? "ok" : "over");
    ++rows_;
    met_ += good ? 1 : 0;
  }

  void header() const {
    std::printf("%-13s %-20s %-22s %6s %8s %8s %8s  %s\n", "GPU", "operation", "table", "rows",
                "median %", "p90 %", "bias", "(median <= 15 %, p90 <= 35 %)");
  }

  void footer() const { std::printf("%d of %d operations within the goal\n", met_, rows_); }

 private:
  int rows_ = 0;
  int met_ = 0;
};

using price = std::function<double(const csv_table&, std::size_t)>;

/// Compares every row that `wanted` keeps; times are `column` x `scale` us.
report_row compare(const std::string& path, const std::string& column, double scale,
                   const std::function<bool(const csv_table&, std::size_t)>& wanted,
                   const price& predict) {
  report_row row;
  if (!std::filesystem::exists(root + path)) {
    std::printf("skipped: %s absent\n", path.c_str());
    return row;
  }
  const csv_table table{root + path};
  const std::size_t time = table.column(column);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const double measured = table.number(i, time) * scale;
    if (measured > 0 && wanted(table, i)) row.ratios.push_back(predict(table, i) / measured);
  }
  return row;
}

std::int64_t cell(const csv_table& table, std::size_t row, const char* column) {
  return static_cast<std::int64_t>(table.number(row, table.column(column)));
}

void aiconfigurator_gemm(report& out, const std::string& gpu_name, const std::string& prefix) {
  const gpu_spec gpu = find_gpu(gpu_name);
  for (const auto& [dtype, format] : {std::pair{"bfloat16", model::weight_format::fp16},
                                      std::pair{"fp8", model::weight_format::fp8}}) {
    const gemm_rates rates = rates_for(gpu, format);
    report_row row = compare(
        "aiconfigurator/" + prefix + "_gemm.csv", "latency_ms", 1e3,
        [&](const csv_table& t, std::size_t i) {
          return t.text(i, t.column("gemm_dtype")) == dtype && cell(t, i, "n") >= 512 &&
                 cell(t, i, "k") >= 512;
        },
        [&](const csv_table& t, std::size_t i) {
          return gemm_us(gpu, rates, cell(t, i, "m"), cell(t, i, "n"), cell(t, i, "k"));
        });
    row.gpu = gpu_name;
    row.operation = std::string{"gemm "} + dtype;
    row.table = "aiconfigurator";
    out.print(row);
  }
}

void aiconfigurator_attention(report& out, const std::string& gpu_name, const std::string& prefix) {
  const gpu_spec gpu = find_gpu(gpu_name);
  const auto wanted = [](const csv_table& t, std::size_t i) {
    return cell(t, i, "num_heads") >= 4;
  };
  const auto shape = [](const csv_table& t, std::size_t i) {
    return attention_shape{cell(t, i, "num_heads"), cell(t, i, "num_key_value_heads"), 128, 2, 0};
  };
  report_row row = compare("aiconfigurator/" + prefix + "_generation_attention_bf16_hd128.csv",
                           "latency_ms", 1e3, wanted, [&](const csv_table& t, std::size_t i) {
                             const std::int64_t batch = cell(t, i, "batch_size");
                             return decode_attention_us(gpu, shape(t, i), batch,
                                                        batch * (cell(t, i, "step") + 1));
                           });
  row.gpu = gpu_name;
  row.operation = "attention decode";
  row.table = "aiconfigurator";
  out.print(row);
  row = compare("aiconfigurator/" + prefix + "_context_attention_bf16_hd128.csv", "latency_ms", 1e3,
                wanted, [&](const csv_table& t, std::size_t i) {
                  const std::vector<prefill_chunk> chunks(
                      static_cast<std::size_t>(cell(t, i, "batch_size")),
                      prefill_chunk{cell(t, i, "isl"), 0});
                  return prefill_attention_us(gpu, shape(t, i), chunks);
                });
  row.gpu = gpu_name;
  row.operation = "attention prefill";
  row.table = "aiconfigurator";
  out.print(row);
  row = compare(
      "aiconfigurator/" + prefix + "_custom_allreduce.csv", "latency_ms", 1e3,
      [](const csv_table& t, std::size_t i) {
        return t.text(i, t.column("backend")) == "vllm_graph";
      },
      [&](const csv_table& t, std::size_t i) {
        // Sizes are in elements of two bytes.
        return all_reduce_us(gpu, static_cast<int>(cell(t, i, "num_gpus")),
                             2 * t.number(i, t.column("message_size")));
      });
  row.gpu = gpu_name;
  row.operation = "all-reduce";
  row.table = "aiconfigurator";
  out.print(row);
}

struct vidur_operation {
  const char* name;
  /// Predicted time for tokens of a table's row, under its tp.
  std::function<double(std::int64_t tokens, std::int64_t tp)> predict;
};

void vidur_mlp(report& out, const std::string& gpu_name, const std::string& path,
               const std::string& model_name, const std::string& label) {
  const gpu_spec gpu = find_gpu(gpu_name);
  const model::model_config m = find_model(model_name);
  const gemm_rates rates = rates_for(gpu, model::weight_format::fp16);
  const auto moved = [&](std::int64_t tokens, std::int64_t elements) {
    return elementwise_us(gpu, static_cast<double>(2 * tokens * elements));
  };
  const vidur_operation operations[] = {
      {"attn_pre_proj",
       [&](auto n, auto tp) {
         return gemm_us(gpu, rates, n, (m.query_size() + 2 * m.kv_size()) / tp, m.hidden_size);
       }},
      {"attn_post_proj",
       [&](auto n, auto tp) { return gemm_us(gpu, rates, n, m.hidden_size, m.query_size() / tp); }},
      {"mlp_up_proj",
       [&](auto n, auto tp) {
         return gemm_us(gpu, rates, n, 2 * m.intermediate_size / tp, m.hidden_size);
       }},
      {"mlp_down_proj",
       [&](auto n, auto tp) {
         return gemm_us(gpu, rates, n, m.hidden_size, m.intermediate_size / tp);
       }},
      {"mlp_act", [&](auto n, auto tp) { return moved(n, 3 * m.intermediate_size / tp); }},
      {"attn_rope",
       [&](auto n, auto tp) { return moved(n, 2 * (m.query_size() + m.kv_size()) / tp); }},
      {"input_layernorm", [&](auto n, auto) { return moved(n, 5 * m.hidden_size / 2); }},
  };
  for (const vidur_operation& operation : operations) {
    report_row row = compare(
        path, std::string{"time_stats."} + operation.name + ".median", 1e3,
        [](const csv_table& t, std::size_t i) { return cell(t, i, "num_tokens") > 0; },
        [&](const csv_table& t, std::size_t i) {
          return operation.predict(cell(t, i, "num_tokens"),
                                   cell(t, i, "num_tensor_parallel_workers"));
        });
    row.gpu = gpu_name;
    row.operation = operation.name;
    row.table = label;
    out.print(row);
  }
}

void vidur_all_reduce(report& out, const std::string& gpu_name, const std::string& path) {
  const gpu_spec gpu = find_gpu(gpu_name);
  report_row row = compare(
      path, "time_stats.all_reduce.median", 1e3,
      [](const csv_table& t, std::size_t i) {
        // One node; below 8 MiB the table measures launches from the host.
        return cell(t, i, "num_workers") == cell(t, i, "devices_per_node") &&
               cell(t, i, "size") >= 8 << 20;
      },
      [&](const csv_table& t, std::size_t i) {
        return all_reduce_us(gpu, static_cast<int>(cell(t, i, "num_workers")),
                             t.number(i, t.column("size")));
      });
  row.gpu = gpu_name;
  row.operation = "all-reduce >= 8 MiB";
  row.table = "Vidur";
  out.print(row);
}

void vidur_attention(report& out, const std::string& gpu_name, const std::string& path,
                     const std::string& label) {
  const gpu_spec gpu = find_gpu(gpu_name);
  const auto shape = [](const csv_table& t, std::size_t i) {
    const std::int64_t tp = cell(t, i, "num_tensor_parallel_workers");
    return attention_shape{cell(t, i, "n_q_head") / tp, cell(t, i, "n_kv_head") / tp, 128, 2, 0};
  };
  report_row row = compare(
      path, "time_stats.attn_decode.median", 1e3,
      [](const csv_table& t, std::size_t i) { return cell(t, i, "prefill_chunk_size") == 0; },
      [&](const csv_table& t, std::size_t i) {
        const std::int64_t batch = cell(t, i, "batch_size");
        return decode_attention_us(gpu, shape(t, i), batch, batch * cell(t, i, "kv_cache_size"));
      });
  row.gpu = gpu_name;
  row.operation = "attention decode";
  row.table = label;
  out.print(row);
  row = compare(
      path, "time_stats.attn_prefill.median", 1e3,
      [](const csv_table& t, std::size_t i) { return cell(t, i, "prefill_chunk_size") > 0; },
      [&](const csv_table& t, std::size_t i) {
        const prefill_chunk chunk{cell(t, i, "prefill_chunk_size"), cell(t, i, "kv_cache_size")};
        return prefill_attention_us(gpu, shape(t, i), {&chunk, 1});
      });
  row.gpu = gpu_name;
  row.operation = "attention prefill";
  row.table = label;
  out.print(row);
}

void layerwise(report& out, const std::string& gpu_name, const std::string& prefix) {
  const gpu_spec gpu = find_gpu(gpu_name);
  const model::model_config m = find_model("llama-3.1-8b");
  const gemm_rates rates = rates_for(gpu, model::weight_format::fp16);
  const std::tuple<const char*, std::int64_t, std::int64_t> layers[] = {
      {"qkv_proj", m.query_size() + 2 * m.kv_size(), m.hidden_size},
      {"o_proj", m.hidden_size, m.query_size()},
      {"gate_up_proj", 2 * m.intermediate_size, m.hidden_size},
      {"down_proj", m.hidden_size, m.intermediate_size}};
  for (const auto& [layer, n, k] : layers) {
    report_row row = compare(
        prefix + "_dense.csv", "time_us", 1,
        [&](const csv_table& t, std::size_t i) { return t.text(i, t.column("layer")) == layer; },
        [&](const csv_table& t, std::size_t i) {
          return gemm_us(gpu, rates, cell(t, i, "tokens"), n, k);
        });
    row.gpu = gpu_name;
    row.operation = layer;
    row.table = "LLMServingSim";
    out.print(row);
  }
  const attention_shape shape{m.heads, m.kv_heads, m.head_dim, 2, 0};
  for (const bool decode : {true, false}) {
    report_row row = compare(
        prefix + "_attention.csv", "time_us", 1,
        [&](const csv_table& t, std::size_t i) {
          return decode ? cell(t, i, "prefill_chunk") == 0 : cell(t, i, "n_decode") == 0;
        },
        [&](const csv_table& t, std::size_t i) {
          const std::int64_t n = cell(t, i, "n_decode");
          const prefill_chunk chunk{cell(t, i, "prefill_chunk"), cell(t, i, "kv_prefill")};
          return decode ? decode_attention_us(gpu, shape, n, n * cell(t, i, "kv_decode"))
                        : prefill_attention_us(gpu, shape, {&chunk, 1});
        });
    row.gpu = gpu_name;
    row.operation = decode ? "attention decode" : "attention prefill";
    row.table = "LLMServingSim";
    out.print(row);
  }
}

/// Whole steps of a real engine on Llama-2-70B. Only tp 2: at 4 and 8 its tokens take
/// equally long, that is, the device waits for the host.
void splitwise_steps(report& out, const std::string& gpu_name, const std::string& hardware) {
  const roofline_cost cost{
      {.config = find_model("llama-2-70b"), .gpu = find_gpu(gpu_name), .tp = 2}};
  const auto wanted = [&](const csv_table& t, std::size_t i) {
    return t.text(i, t.column("model")) == "llama2-70b" &&
           t.text(i, t.column("hardware")) == hardware && cell(t, i, "tensor_parallel") == 2;
  };
  const std::string path = "splitwise_sim/perf_model.csv";
  report_row row = compare(path, "token_time", 1e3, wanted, [&](const csv_table& t, std::size_t i) {
    const std::int64_t batch = cell(t, i, "batch_size");
    const std::int64_t context = cell(t, i, "prompt_size") + cell(t, i, "token_size") / 2;
    step_shape shape;
    shape.decode_sequences = batch;
    shape.decode_context = batch * context;
    shape.decode_context_max = context;
    shape.sampled_sequences = batch;
    return cost.device_time_us(shape);
  });
  row.gpu = gpu_name;
  row.operation = "whole decode step";
  row.table = "Splitwise TP2, check";
  out.print(row);
  row = compare(path, "prompt_time", 1e3, wanted, [&](const csv_table& t, std::size_t i) {
    const std::int64_t batch = cell(t, i, "batch_size");
    const std::vector<prefill_chunk> chunks(static_cast<std::size_t>(batch),
                                            prefill_chunk{cell(t, i, "prompt_size"), 0});
    step_shape shape;
    shape.chunks = chunks;
    shape.prefill_tokens = batch * cell(t, i, "prompt_size");
    shape.sampled_sequences = batch;
    return cost.device_time_us(shape);
  });
  row.gpu = gpu_name;
  row.operation = "whole prefill step";
  row.table = "Splitwise TP2, check";
  out.print(row);
}

}  // namespace

int main() {
  report out;
  out.header();
  for (const auto& [gpu, prefix] :
       {std::pair{"a100-80g", "a100_sxm_vllm0.14.0"}, std::pair{"h100", "h100_sxm_vllm0.24.0"},
        std::pair{"h200", "h200_sxm_vllm0.24.0"}}) {
    aiconfigurator_gemm(out, gpu, prefix);
    aiconfigurator_attention(out, gpu, prefix);
  }
  vidur_mlp(out, "a100-80g", "vidur/a100/Llama-2-7b-hf_mlp.csv", "llama-2-7b", "Vidur 7B");
  vidur_mlp(out, "a100-80g", "vidur/a100/Meta-Llama-3-8B_mlp.csv", "llama-3.1-8b", "Vidur 8B");
  vidur_mlp(out, "h100", "vidur/h100/Llama-2-7b-hf_mlp.csv", "llama-2-7b", "Vidur 7B");
  vidur_all_reduce(out, "a100-80g", "vidur/network/a100_dgx_all_reduce.csv");
  vidur_all_reduce(out, "h100", "vidur/network/h100_dgx_all_reduce.csv");
  vidur_attention(out, "a100-80g", "vidur/a100/Llama-2-70b_tp2_attention_2024-05.csv.gz",
                  "Vidur 70B TP2, check");
  vidur_attention(out, "a100-80g", "frontier/a800_llama2_7b/attention.csv", "Frontier A800, check");
  layerwise(out, "rtx-4090", "llmservingsim/profile/RTX4090_Llama-3.1-8B_bf16_tp1");
  layerwise(out, "rtx-pro-6000", "llmservingsim/profile/RTXPRO6000_Llama-3.1-8B_bf16_tp1");
  splitwise_steps(out, "a100-80g", "a100-80gb");
  splitwise_steps(out, "h100", "h100-80gb");
  out.footer();
}
