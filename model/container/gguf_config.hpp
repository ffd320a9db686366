// The shape and the rules of a model from the metadata of its GGUF file.
#pragma once

#include "model/config.hpp"
#include "model/container/gguf.hpp"

namespace octavo::model {

/// Architectures llama (also Mistral's), mistral, qwen2, qwen3, gemma2 and
/// gemma3. Throws input_error naming the key that is missing, ill-typed, or
/// stands for something unsupported, and the tensor that contradicts it.
///
/// Rotation is interleaved for llama and mistral: their files hold query and
/// key rows in that order.
[[nodiscard]] model_config gguf_model_config(const gguf_file& file);

}  // namespace octavo::model
