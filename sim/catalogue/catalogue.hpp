// Names to numbers: the GPUs and models that ship with the program, and files
// of the same form that a user brings.
//
//   gpu_spec gpu = find_gpu("h100");                  // or "my-gpu.json"
//   model::model_config m = find_model("llama-3.1-8b");  // or "path/config.json"
#pragma once

#include <iosfwd>
#include <string>

#include "model/config.hpp"
#include "sim/catalogue/gpu.hpp"

namespace octavo::sim {

/// A GPU by its catalogue name, else from an `octavo.gpu/1` file of that path.
/// Throws input_error that lists the known names.
[[nodiscard]] gpu_spec find_gpu(const std::string& name_or_path);

/// A model by its catalogue name, else from a Hugging Face config.json of that
/// path (or a folder that holds one), or from a .gguf file. Throws input_error that
/// lists the known names.
[[nodiscard]] model::model_config find_model(const std::string& name_or_path);

/// One line per GPU: peaks, memory, link, price.
void list_gpus(std::ostream& out);

/// One line per model: parameters, layers, heads, KV bytes per token.
void list_models(std::ostream& out);

/// KV bytes per token and the GB that one sequence holds at 8K, 32K and 128K
/// tokens of context, in fp16 and fp8; layers that slide keep their window.
void kv_table(const model::model_config& config, std::ostream& out);

}  // namespace octavo::sim
