// Tests only: the least that opens as a checkpoint, for tests of what lies beside weights.
#pragma once

#include <string>

#include "model/container/gguf_writer.hpp"
#include "model/container/safetensors_writer.hpp"
#include "model/container/test_files.hpp"

namespace octavo::model {

/// A GGUF file's description of a small llama, without tensors or a vocabulary.
inline gguf_writer described_llama() {
  gguf_writer w;
  w.text("general.architecture", "llama").u32("llama.embedding_length", 64);
  w.u32("llama.block_count", 1).u32("llama.attention.head_count", 4);
  w.u32("llama.feed_forward_length", 128).u32("llama.context_length", 64);
  w.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  return w;
}

/// A directory with config.json and one small tensor.
inline void write_directory(const test_folder& folder) {
  folder.write("config.json",
               R"({"model_type":"llama","hidden_size":8,"num_hidden_layers":1,
                   "num_attention_heads":2,"intermediate_size":16,"vocab_size":22,
                   "max_position_embeddings":64,"rms_norm_eps":1e-5,"hidden_act":"silu"})");
  safetensors_writer weights;
  weights.tensor("model.norm.weight", "F32", {8}, std::string(32, '\0'));
  folder.write("model.safetensors", weights.file());
}

}  // namespace octavo::model
