// Opens models of either form; see checkpoint.hpp.
#include "model/container/checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "model/container/gguf_config.hpp"
#include "model/container/safetensors.hpp"
#include "model/container/tensor_names.hpp"
#include "model/quantized/dequantize.hpp"
#include "model/strict_json.hpp"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

// config.json and the like hold kilobytes; an index, a line for each tensor.
constexpr std::uintmax_t text_bytes_max = 100'000'000;

std::string read_text(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  std::ifstream file{path, std::ios::binary};
  if (error || !file) throw input_error(path + ": cannot be opened");
  if (size > text_bytes_max) {
    throw input_error(path + ": has " + std::to_string(size) + " bytes; up to " +
                      std::to_string(text_bytes_max) + " are read");
  }
  return {std::istreambuf_iterator<char>{file}, {}};
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// GGUF counts dimensions from the contiguous one.
stored_tensor from_gguf(const gguf_tensor& tensor) {
  return {tensor.name, tensor.type, {tensor.dims.rbegin(), tensor.dims.rend()}, tensor.bytes};
}

}  // namespace

checkpoint checkpoint::open(const std::string& path) {
  checkpoint opened;
  opened.path_ = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    opened.open_directory();
  } else if (path.ends_with(".safetensors")) {
    throw input_error(path + ": give the directory that holds it, config.json and tokenizer.json");
  } else {
    opened.open_gguf();
  }
  return opened;
}

void checkpoint::open_gguf() {
  files_.emplace_back(path_);
  gguf_ = std::make_unique<gguf_file>(parse_gguf(files_.back().bytes(), path_));
  config_ = gguf_model_config(*gguf_);
  generation_ = gguf_generation_config(gguf_->metadata);
  for (const gguf_tensor& tensor : gguf_->tensors) {
    // Already in the configuration, as divisors of the rotation.
    if (tensor.name == "rope_freqs.weight") {
      other_tensors_.push_back(tensor.name);
      tensor_bytes_ += tensor.bytes.size();
    } else {
      add_tensor(tensor.name, from_gguf(tensor));
    }
  }
}

std::string checkpoint::companion(std::string_view name) const {
  if (gguf_ != nullptr) return {};
  const std::string file = path_ + "/" + std::string(name);
  return is_file(file) ? file : std::string{};
}

void checkpoint::open_directory() {
  const std::string config_path = path_ + "/config.json";
  if (!is_file(config_path)) {
    throw input_error(path_ +
                      ": has no config.json; a Hugging Face directory or a .gguf file is "
                      "expected");
  }
  config_ = parse_config(read_text(config_path), config_path);
  read_quantization(config_path);
  read_generation(config_path);
  read_shards();
  if (!config_.tied_embeddings && !has_matrix("output")) {
    config_.tied_embeddings = true;
    config_.notes.emplace_back("no output head in the files: the embedding is used");
  }
}

void checkpoint::read_quantization(const std::string& config_path) {
  const auto document = parse_strict_json(read_text(config_path), config_path, 64);
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (document.contains(key) && document.at(key).is_object()) {
      quantization_ = parse_quantization_config(document.at(key), config_path + " (" + key + ")");
      return;
    }
  }
  for (const char* name : {"quantize_config.json", "quant_config.json"}) {
    const std::string file = companion(name);
    if (file.empty()) continue;
    quantization_ = parse_quantization_config(load_json_file(file, text_bytes_max), file);
    return;
  }
}

void checkpoint::read_generation(const std::string& config_path) {
  generation_ = parse_generation_config(read_text(config_path), config_path);
  const std::string file = companion("generation_config.json");
  if (file.empty()) return;
  auto own = parse_generation_config(read_text(file), file);
  if (own.stop_tokens.empty()) own.stop_tokens = generation_.stop_tokens;
  if (!own.bos_token) own.bos_token = generation_.bos_token;
  generation_ = std::move(own);
}

void checkpoint::read_shards() {
  const std::string index_path = companion("model.safetensors.index.json");
  if (index_path.empty()) {
    if (companion("model.safetensors").empty()) {
      throw input_error(path_ + ": has neither model.safetensors nor model.safetensors.index.json");
    }
    add_shard(path_ + "/model.safetensors", nullptr);
    return;
  }
  const shard_map index = parse_shard_index(read_text(index_path), index_path);
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : index) shards.insert(shard);
  std::size_t found = 0;
  for (const std::string& shard : shards) {
    const std::size_t before = tensors_.size() + other_tensors_.size();
    add_shard(path_ + "/" + shard, &index);
    found += tensors_.size() + other_tensors_.size() - before;
  }
  if (found == index.size()) return;
  std::set<std::string> present(other_tensors_.begin(), other_tensors_.end());
  for (const auto& [name, tensor] : tensors_) present.insert(tensor.name);
  for (const auto& [tensor, shard] : index) {
    if (present.contains(tensor)) continue;
    throw input_error(index_path + ": tensor \"" + tensor + "\" is not in " + shard);
  }
}

void checkpoint::add_shard(const std::string& file, const shard_map* index) {
  files_.emplace_back(file);
  const std::string shard = fs::path(file).filename().string();
  const bool output_norms = config_.norms_per_layer == 4;
  for (stored_tensor& tensor : parse_safetensors(files_.back().bytes(), file)) {
    if (index != nullptr) {
      const auto listed = index->find(tensor.name);
      if (listed == index->end() || listed->second != shard) {
        throw input_error(file + ": tensor \"" + tensor.name +
                          "\" does not lie here according to model.safetensors.index.json");
      }
    }
    std::string name = canonical_tensor_name(tensor.name, output_norms);
    if (name.empty()) {
      tensor_bytes_ += tensor.bytes.size();
      other_tensors_.push_back(tensor.name);
    } else {
      add_tensor(std::move(name), std::move(tensor));
    }
  }
}

void checkpoint::add_tensor(std::string name, stored_tensor tensor) {
  tensor_bytes_ += tensor.bytes.size();
  const std::string stored_name = tensor.name;
  const auto [place, added] = tensors_.emplace(std::move(name), std::move(tensor));
  if (!added) {
    throw input_error(path_ + ": tensors \"" + place->second.name + "\" and \"" + stored_name +
                      "\" stand for the same part of the model");
  }
}

const stored_tensor* checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

weight_parts checkpoint::parts_of(const std::string& base) const {
  const auto first = [&](std::initializer_list<const char*> suffixes) -> const stored_tensor* {
    for (const char* suffix : suffixes) {
      if (const auto* tensor = find(base + suffix)) return tensor;
    }
    return nullptr;
  };
  return {first({".qweight", ".weight_packed", ".weight"}),
          first({".scales", ".weight_scale", ".weight_scale_inv"}),
          first({".qzeros", ".weight_zero_point"}), first({".g_idx", ".weight_g_idx"}),
          first({".weight_shape"})};
}

bool checkpoint::has_matrix(std::string_view base) const {
  return parts_of(std::string(base)).weight != nullptr;
}

weight_matrix checkpoint::matrix(std::string_view base) const {
  const weight_parts parts = parts_of(std::string(base));
  if (parts.weight == nullptr) {
    throw input_error(path_ + ": the weight \"" + std::string(base) + "\" is missing");
  }
  const bool one_byte =
      parts.weight->type == element_type::i8 || parts.weight->type == element_type::f8_e4m3;
  try {
    if (find(std::string(base) + ".qweight") != nullptr) {
      if (quantization_.method == quantization_method::awq) {
        return make_awq_matrix(quantization_, parts);
      }
      if (quantization_.method == quantization_method::gptq) {
        return make_gptq_matrix(quantization_, parts);
      }
      throw input_error("tensor \"" + parts.weight->name +
                        "\" is quantized, but no configuration says how");
    }
    if (find(std::string(base) + ".weight_packed") != nullptr) {
      return make_packed_matrix(quantization_, parts);
    }
    if (gguf_ == nullptr && one_byte) return make_scaled_matrix(quantization_, parts);
    return make_block_matrix(*parts.weight);
  } catch (const input_error& error) {
    throw input_error(path_ + ": " + error.what());
  }
}

weight_matrix checkpoint::matrix(std::string_view base, std::int64_t rows,
                                 std::int64_t columns) const {
  weight_matrix result = matrix(base);
  if (rows_of(result) != rows || columns_of(result) != columns) {
    throw input_error(path_ + ": the weight \"" + std::string(base) + "\" has " +
                      std::to_string(rows_of(result)) + " outputs and " +
                      std::to_string(columns_of(result)) + " inputs; the configuration needs " +
                      std::to_string(rows) + " and " + std::to_string(columns));
  }
  return result;
}

std::vector<float> checkpoint::vector(std::string_view name, std::int64_t size) const {
  const stored_tensor* tensor = find(name);
  if (tensor == nullptr) {
    throw input_error(path_ + ": the tensor \"" + std::string(name) + "\" is missing");
  }
  if (tensor->shape != std::vector<std::int64_t>{size}) {
    throw input_error(path_ + ": tensor \"" + tensor->name + "\" has shape " +
                      to_string(tensor->shape) + "; [" + std::to_string(size) + "] is expected");
  }
  std::vector<float> values(static_cast<std::size_t>(size));
  dequantize(tensor->type, tensor->bytes, values);
  return values;
}

void checkpoint::done_with(const stored_tensor& tensor) const {
  done_with(tensor, 0, tensor.bytes.size());
}

void checkpoint::done_with(const stored_tensor& tensor, std::size_t begin, std::size_t end) const {
  for (const mapped_file& file : files_) {
    const auto whole = file.bytes();
    const std::less<> before;
    const bool inside = !before(tensor.bytes.data(), whole.data()) &&
                        before(tensor.bytes.data(), whole.data() + whole.size());
    if (!inside) continue;
    file.done_with(static_cast<std::size_t>(tensor.bytes.data() - whole.data()) + begin,
                   end - begin);
    return;
  }
}

}  // namespace octavo::model
