// Looks names up in the embedded data files and prints the lists.
#include "sim/catalogue/catalogue.hpp"

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <optional>
#include <ostream>
#include <vector>

#include "core/error.hpp"
#include "model/container/checkpoint.hpp"
#include "model/kv_arithmetic.hpp"
#include "sim/catalogue/embedded.hpp"

namespace octavo::sim {
namespace {

constexpr std::string_view suffix = ".json";

/// The embedded files of one folder, as names without folder and suffix.
std::vector<embedded_file> entries(std::string_view folder) {
  std::vector<embedded_file> result;
  for (const embedded_file& file : embedded_files()) {
    if (!file.path.starts_with(folder)) continue;
    std::string_view name = file.path.substr(folder.size());
    name.remove_suffix(suffix.size());
    result.push_back({name, file.text});
  }
  return result;
}

std::optional<std::string_view> embedded_text(std::string_view folder, std::string_view name) {
  for (const embedded_file& file : entries(folder)) {
    if (file.path == name) return file.text;
  }
  return std::nullopt;
}

[[noreturn]] void unknown(const std::string& what, std::string_view folder,
                          const std::string& name) {
  std::string known;
  for (const embedded_file& file : entries(folder)) {
    known += (known.empty() ? "" : ", ") + std::string{file.path};
  }
  throw input_error("unknown " + what + " \"" + name + "\": it is neither a file nor one of " +
                    known);
}

std::string read_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw input_error(path + ": cannot be opened");
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

gpu_spec find_gpu(const std::string& name_or_path) {
  if (const auto text = embedded_text("gpus/", name_or_path)) {
    return parse_gpu(*text, name_or_path);
  }
  if (!std::filesystem::is_regular_file(name_or_path)) unknown("GPU", "gpus/", name_or_path);
  return parse_gpu(read_file(name_or_path), name_or_path);
}

model::model_config find_model(const std::string& name_or_path) {
  if (const auto text = embedded_text("models/", name_or_path)) {
    return model::parse_config(*text, name_or_path);
  }
  if (name_or_path.ends_with(".gguf") && std::filesystem::is_regular_file(name_or_path)) {
    return model::checkpoint::open(name_or_path).config();
  }
  std::string path = name_or_path;
  if (std::filesystem::is_directory(path)) path += "/config.json";
  if (!std::filesystem::is_regular_file(path)) unknown("model", "models/", name_or_path);
  return model::load_config(path);
}

void list_gpus(std::ostream& out) {
  out << std::left << std::setw(14) << "name" << std::right << std::setw(12) << "fp16 TFLOPS"
      << std::setw(12) << "fp8 TFLOPS" << std::setw(10) << "int8 TOPS" << std::setw(11)
      << "memory GB" << std::setw(8) << "GB/s" << std::setw(18) << "link" << std::setw(7) << "GB/s"
      << std::setw(8) << "USD/h"
      << "  description\n";
  for (const embedded_file& file : entries("gpus/")) {
    const gpu_spec gpu = parse_gpu(file.text, file.path);
    out << std::left << std::setw(14) << gpu.name << std::right << std::fixed
        << std::setprecision(1) << std::setw(12) << gpu.fp16_flops / 1e12 << std::setw(12)
        << gpu.fp8_flops / 1e12 << std::setw(10) << gpu.int8_ops / 1e12 << std::setw(11)
        << static_cast<double>(gpu.memory_bytes) / 1e9 << std::setprecision(0) << std::setw(8)
        << gpu.bandwidth / 1e9 << std::setw(18) << gpu.link_kind << std::setw(7)
        << gpu.link_bandwidth / 1e9 << std::setprecision(2) << std::setw(8)
        << gpu.price_usd_per_hour << "  " << gpu.title << '\n';
  }
}

void list_models(std::ostream& out) {
  out << std::left << std::setw(14) << "name" << std::right << std::setw(16) << "parameters"
      << std::setw(8) << "layers" << std::setw(8) << "hidden" << std::setw(7) << "heads"
      << std::setw(10) << "KV heads" << std::setw(10) << "max len" << std::setw(16)
      << "KV bytes/token"
      << "  window\n";
  for (const embedded_file& file : entries("models/")) {
    const model::model_config config = model::parse_config(file.text, file.path);
    out << std::left << std::setw(14) << config.name << std::right << std::setw(16)
        << config.parameters() << std::setw(8) << config.layers << std::setw(8)
        << config.hidden_size << std::setw(7) << config.heads << std::setw(10) << config.kv_heads
        << std::setw(10) << config.max_positions << std::setw(16)
        << model::kv_bytes_per_token(config, model::kv_dtype::fp16, 1) << "  ";
    if (config.sliding_window > 0) {
      out << config.sliding_window << " in " << config.sliding_layers() << " layers";
    } else {
      out << '-';
    }
    out << '\n';
  }
}

void kv_table(const model::model_config& config, std::ostream& out) {
  out << config.name << ": " << config.layers << " layers x 2 x " << config.kv_heads
      << " KV heads x " << config.head_dim;
  if (config.sliding_window > 0) {
    out << "; " << config.sliding_layers() << " layers keep " << config.sliding_window << " tokens";
  }
  out << "\nKV dtype  bytes/token     8K GB    32K GB   128K GB\n";
  for (const auto dtype : {model::kv_dtype::fp16, model::kv_dtype::fp8}) {
    out << std::left << std::setw(8) << model::to_string(dtype) << std::right << std::setw(13)
        << model::kv_bytes_per_token(config, dtype, 1) << std::fixed << std::setprecision(3);
    for (const std::int64_t context : {8192, 32768, 131072}) {
      out << std::setw(10)
          << static_cast<double>(model::kv_bytes_at(config, dtype, 1, context)) / 1e9;
    }
    out << '\n';
  }
}

}  // namespace octavo::sim
