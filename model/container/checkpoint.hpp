// A model on disk, whichever form it has: one GGUF file, or a Hugging Face
// directory of config.json and safetensors. Tensors go by one naming
// (tensor_names.hpp) and weights by one type (weight_matrix.hpp).
//
//   checkpoint model = checkpoint::open("model.gguf");      // or a directory
//   model.config().hidden_size;
//   weight_matrix q = model.matrix("blk.0.attn_q", rows, columns);
//   std::vector<float> norm = model.vector("blk.0.attn_norm.weight", columns);
//   model.done_with(tensor);                                 // repacked: drop its pages
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.hpp"
#include "model/container/generation_config.hpp"
#include "model/container/gguf.hpp"
#include "model/container/mapped_file.hpp"
#include "model/quantized/quantization_config.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::model {

class checkpoint {
 public:
  using tensor_map = std::map<std::string, stored_tensor, std::less<>>;

  /// Maps and checks everything. Throws input_error naming the file and field
  /// that is missing, malformed or not supported.
  [[nodiscard]] static checkpoint open(const std::string& path);

  /// The file or directory as given.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const model_config& config() const { return config_; }
  /// How the weights of a directory are quantized; none for GGUF files, whose
  /// tensors each say it themselves.
  [[nodiscard]] const quantization_config& quantization() const { return quantization_; }
  [[nodiscard]] const generation_config& generation() const { return generation_; }
  /// The parsed GGUF file, which also holds the tokenizer; nullptr for directories.
  [[nodiscard]] const gguf_file* gguf() const { return gguf_.get(); }
  /// Path of a file beside config.json ("tokenizer.json"); empty where there is
  /// none, and always for GGUF files.
  [[nodiscard]] std::string companion(std::string_view name) const;

  /// Tensors of the decoder.
  [[nodiscard]] const tensor_map& tensors() const { return tensors_; }
  /// Names in the files of tensors that are no part of the decoder.
  [[nodiscard]] const std::vector<std::string>& other_tensors() const { return other_tensors_; }
  /// nullptr where there is no such tensor.
  [[nodiscard]] const stored_tensor* find(std::string_view name) const;
  /// Bytes of all tensors, those outside the decoder included.
  [[nodiscard]] std::uint64_t tensor_bytes() const { return tensor_bytes_; }

  /// Is there a weight of this name, in any form? ("output" where it is not tied.)
  [[nodiscard]] bool has_matrix(std::string_view base) const;
  /// The weight "BASE.weight", however it is stored. Throws input_error where it
  /// is missing, malformed, or not of `rows` outputs and `columns` inputs.
  [[nodiscard]] weight_matrix matrix(std::string_view base, std::int64_t rows,
                                     std::int64_t columns) const;
  [[nodiscard]] weight_matrix matrix(std::string_view base) const;
  /// A one-dimensional tensor as floats. Throws input_error where it is missing
  /// or not of `size` elements.
  [[nodiscard]] std::vector<float> vector(std::string_view name, std::int64_t size) const;

  /// Says that the tensor's pages will not be read any more.
  void done_with(const stored_tensor& tensor) const;
  /// The same for its bytes [begin, end).
  void done_with(const stored_tensor& tensor, std::size_t begin, std::size_t end) const;

 private:
  checkpoint() = default;
  void open_gguf();
  void open_directory();
  void read_quantization(const std::string& config_path);
  void read_generation(const std::string& config_path);
  void read_shards();
  void add_shard(const std::string& file,
                 const std::map<std::string, std::string, std::less<>>* index);
  void add_tensor(std::string name, stored_tensor tensor);
  [[nodiscard]] weight_parts parts_of(const std::string& base) const;

  std::string path_;
  std::vector<mapped_file> files_;
  std::unique_ptr<gguf_file> gguf_;
  model_config config_;
  quantization_config quantization_;
  generation_config generation_;
  tensor_map tensors_;
  std::vector<std::string> other_tensors_;
  std::uint64_t tensor_bytes_ = 0;
};

}  // namespace octavo::model
