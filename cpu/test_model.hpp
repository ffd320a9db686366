// Tests only: tiny random models as GGUF files, and their forward pass in float64
// straight from the definition: no pages, no chunks, no batch. Only keys and values
// are rounded to half precision or to 8 bits, as any implementation with such a cache
// does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cpu/decoder/weights.hpp"
#include "model/container/checkpoint.hpp"
#include "model/container/gguf_writer.hpp"
#include "model/container/test_files.hpp"
#include "model/formats.hpp"
#include "model/load_tokenizer.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::cpu {

/// What the tiny models have in common, and by what they differ.
struct tiny_shape {
  static constexpr std::size_t hidden = 64, head_dim = 16, mlp = 128, vocabulary = 64;
  static constexpr double epsilon = 1e-5;

  std::string architecture = "llama";
  std::size_t layers = 2;
  bool quantized = false;         ///< Q8_0 matrices rather than F32
  bool qkv_bias = false;          ///< as Qwen2
  bool qk_norm = false;           ///< as Qwen3 and Gemma 3
  bool gemma = false;             ///< norms of outputs, GELU, scaled embeddings, tied head
  std::vector<bool> slides = {};  ///< by layer; empty: none does
  std::size_t window = 0;
  std::string left_out = {};  ///< a tensor that the file lacks
  std::size_t heads = 4;
  std::size_t kv_heads = 2;
  bool output_bias = false;  ///< of the attention's output and down
  std::size_t tokens = vocabulary;
  model::kv_dtype kv_dtype = model::kv_dtype::fp16;  ///< as float64 keeps keys and values
};

inline tiny_shape llama_shape(bool quantized) {
  return {.quantized = quantized};
}
/// All layers slide, as in the first Mistral.
inline tiny_shape sliding_shape() {
  return {.slides = {true, true}, .window = 32};
}
/// Two sliding layers to each full one: two blocks of the pool for 16 tokens of theirs.
inline tiny_shape gemma_shape() {
  return {.architecture = "gemma3",
          .layers = 3,
          .qk_norm = true,
          .gemma = true,
          .slides = {true, true, false},
          .window = 32};
}

class tiny_model {
 public:
  explicit tiny_model(tiny_shape shape, unsigned seed = 1) : shape_(std::move(shape)) {
    random_.seed(seed);
    describe();
    add_tensors();
    file_ = folder_.write("tiny.gguf", writer_.file());
  }

  [[nodiscard]] const tiny_shape& shape() const { return shape_; }
  [[nodiscard]] const std::string& file() const { return file_; }

  [[nodiscard]] std::shared_ptr<const decoder_weights> load(int ranks = 1) const {
    thread_pool pool{1};
    return std::make_shared<const decoder_weights>(
        load_decoder(model::checkpoint::open(file_), pool, {}, ranks));
  }
  [[nodiscard]] model::tokenizer words() const {
    return model::load_tokenizer(model::checkpoint::open(file_));
  }

  /// The logits after each token, in float64.
  [[nodiscard]] std::vector<std::vector<double>> logits(const std::vector<token_id>& tokens) const {
    rows x;
    const double factor = shape_.gemma ? std::sqrt(static_cast<double>(tiny_shape::hidden)) : 1.0;
    const row& table = values_.at("token_embd.weight");
    for (const token_id token : tokens) {
      const auto begin = table.begin() + token * static_cast<std::int64_t>(tiny_shape::hidden);
      x.emplace_back(begin, begin + tiny_shape::hidden);
      for (double& value : x.back()) value *= factor;
    }
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
      const std::string at = "blk." + std::to_string(layer) + ".";
      add(x,
          norm_if_any(attention(normed(x, at + "attn_norm"), layer), at + "post_attention_norm"));
      add(x, norm_if_any(feed_forward(normed(x, at + "ffn_norm"), at), at + "post_ffw_norm"));
    }
    return product(normed(x, "output_norm"), shape_.gemma ? "token_embd" : "output");
  }

 private:
  using row = std::vector<double>;
  using rows = std::vector<row>;

  // ---- the file
  void describe() {
    const std::string arch = shape_.architecture;
    writer_.text("general.architecture", arch).u32(arch + ".embedding_length", 64);
    writer_.u32(arch + ".block_count", static_cast<std::uint32_t>(shape_.layers));
    writer_.u32(arch + ".attention.head_count", static_cast<std::uint32_t>(shape_.heads));
    writer_.u32(arch + ".attention.head_count_kv", static_cast<std::uint32_t>(shape_.kv_heads));
    writer_.u32(arch + ".attention.key_length", 16).u32(arch + ".attention.value_length", 16);
    writer_.u32(arch + ".feed_forward_length", 128).u32(arch + ".context_length", 512);
    writer_.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5F);
    writer_.f32(arch + ".rope.freq_base", static_cast<float>(theta(false)));
    if (shape_.gemma) writer_.f32(arch + ".rope.freq_base_swa", static_cast<float>(theta(true)));
    if (!shape_.slides.empty()) {
      writer_.u32(arch + ".attention.sliding_window", static_cast<std::uint32_t>(shape_.window));
      writer_.numbers<std::uint8_t>(arch + ".attention.sliding_window_pattern", 7,
                                    {shape_.slides.begin(), shape_.slides.end()});
    }
    std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
    std::vector<std::int32_t> types{2, 3, 3};
    for (char c = '!'; tokens.size() < shape_.tokens; ++c) {
      tokens.emplace_back(1, c);
      types.push_back(1);
    }
    writer_.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", tokens);
    writer_.numbers("tokenizer.ggml.scores", 6, std::vector<float>(tokens.size(), -1.0F));
    writer_.numbers("tokenizer.ggml.token_type", 5, types).u32("tokenizer.ggml.eos_token_id", 2);
  }

  void add_tensors() {
    const tiny_shape& s = shape_;
    matrix("token_embd", s.tokens, s.hidden, s.gemma ? 0.3F : 1.0F);
    if (!s.gemma) matrix("output", s.tokens, s.hidden, 0.3F);
    vector("output_norm.weight", s.hidden, 1);
    for (std::size_t layer = 0; layer < s.layers; ++layer) {
      const std::string at = "blk." + std::to_string(layer) + ".";
      vector(at + "attn_norm.weight", s.hidden, 1);
      vector(at + "ffn_norm.weight", s.hidden, 1);
      if (s.gemma) vector(at + "post_attention_norm.weight", s.hidden, 1);
      if (s.gemma) vector(at + "post_ffw_norm.weight", s.hidden, 1);
      if (s.qk_norm) vector(at + "attn_q_norm.weight", s.head_dim, 1);
      if (s.qk_norm) vector(at + "attn_k_norm.weight", s.head_dim, 1);
      const std::size_t kv = s.kv_heads * s.head_dim;
      matrix(at + "attn_q", s.heads * s.head_dim, s.hidden, 0.2F);
      matrix(at + "attn_k", kv, s.hidden, 0.2F);
      matrix(at + "attn_v", kv, s.hidden, 0.2F);
      if (s.qkv_bias) vector(at + "attn_q.bias", s.heads * s.head_dim, 0);
      if (s.qkv_bias) vector(at + "attn_k.bias", kv, 0);
      if (s.qkv_bias) vector(at + "attn_v.bias", kv, 0);
      matrix(at + "attn_output", s.hidden, s.heads * s.head_dim, 0.2F);
      if (s.output_bias) vector(at + "attn_output.bias", s.hidden, 0);
      if (s.output_bias) vector(at + "ffn_down.bias", s.hidden, 0);
      matrix(at + "ffn_gate", s.mlp, s.hidden, 0.2F);
      matrix(at + "ffn_up", s.mlp, s.hidden, 0.2F);
      matrix(at + "ffn_down", s.hidden, s.mlp, 0.1F);
    }
  }

  void vector(const std::string& name, std::size_t size, float middle) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) {
      const float value = middle + 0.2F * normal_(random_);
      bytes += model::gguf_writer::raw(value);
      values_[name].push_back(value);
    }
    if (name != shape_.left_out) writer_.tensor(name, 0, {size}, bytes);
  }

  void matrix(const std::string& base, std::size_t outputs, std::size_t inputs, float deviation) {
    std::string bytes;
    row& values = values_[base + ".weight"];
    for (std::size_t i = 0; i < outputs * inputs; ++i) {
      if (!shape_.quantized) {
        const float value = deviation * normal_(random_);
        bytes += model::gguf_writer::raw(value);
        values.push_back(value);
        continue;
      }
      // Q8_0: blocks of a half-precision scale and 32 codes. A uniform code has a
      // deviation of 73.
      const std::uint16_t scale = model::float_to_half(deviation / 73);
      if (i % 32 == 0) bytes += model::gguf_writer::raw(scale);
      const auto code = static_cast<std::int8_t>(static_cast<int>(random_() % 255) - 127);
      bytes += model::gguf_writer::raw(code);
      values.push_back(static_cast<double>(model::half_to_float(scale)) * code);
    }
    if (base + ".weight" == shape_.left_out) return;
    writer_.tensor(base + ".weight", shape_.quantized ? 8 : 0, {inputs, outputs}, bytes);
  }

  // ---- the forward pass
  [[nodiscard]] double theta(bool local) const { return local && shape_.gemma ? 100 : 10'000; }

  [[nodiscard]] rows product(const rows& x, const std::string& base) const {
    const row& w = values_.at(base + ".weight");
    const auto bias = values_.find(base + ".bias");
    const std::size_t inputs = x[0].size();
    rows out(x.size(), row(w.size() / inputs));
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t o = 0; o < out[t].size(); ++o) {
        double sum = bias == values_.end() ? 0 : bias->second[o];
        for (std::size_t i = 0; i < inputs; ++i) sum += x[t][i] * w[o * inputs + i];
        out[t][o] = sum;
      }
    }
    return out;
  }

  static void norm(double* x, const row& weight) {
    double squares = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) squares += x[i] * x[i];
    const double size = static_cast<double>(weight.size());
    const double factor = 1 / std::sqrt(squares / size + tiny_shape::epsilon);
    for (std::size_t i = 0; i < weight.size(); ++i) x[i] *= factor * weight[i];
  }
  [[nodiscard]] rows normed(rows x, const std::string& base) const {
    for (row& r : x) norm(r.data(), values_.at(base + ".weight"));
    return x;
  }
  [[nodiscard]] rows norm_if_any(rows x, const std::string& base) const {
    return values_.contains(base + ".weight") ? normed(std::move(x), base) : x;
  }
  static void add(rows& x, const rows& y) {
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
    }
  }

  /// Norms the heads where the model does, and turns them by their positions.
  void turn(rows& x, const std::string& norm_name, bool local) const {
    constexpr std::size_t dim = tiny_shape::head_dim;
    const bool neighbors = shape_.architecture == "llama";
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t h = 0; h < x[t].size() / dim; ++h) {
        double* head = x[t].data() + h * dim;
        if (shape_.qk_norm) norm(head, values_.at(norm_name));
        for (std::size_t i = 0; i < dim / 2; ++i) {
          const double power = -2.0 * static_cast<double>(i) / dim;
          const double angle = static_cast<double>(t) * std::pow(theta(local), power);
          double& a = head[neighbors ? 2 * i : i];
          double& b = head[neighbors ? 2 * i + 1 : i + dim / 2];
          const double turned = a * std::cos(angle) - b * std::sin(angle);
          b = a * std::sin(angle) + b * std::cos(angle);
          a = turned;
        }
      }
    }
  }

  /// The cache keeps keys and values in half precision, or heads of 8 bits with a
  /// scale in half precision.
  void round_as_kept(rows& x) const {
    const auto half = [](double value) {
      return double{model::half_to_float(model::float_to_half(static_cast<float>(value)))};
    };
    for (row& r : x) {
      for (std::size_t i = 0; i < r.size(); i += tiny_shape::head_dim) {
        const std::span head{r.data() + i, tiny_shape::head_dim};
        double largest = 0;
        for (const double value : head) largest = std::max(largest, std::fabs(value));
        const double step = half(largest / 127);
        for (double& value : head) {
          value = shape_.kv_dtype == model::kv_dtype::int8 ? step * std::nearbyint(value / step)
                                                           : half(value);
        }
      }
    }
  }

  [[nodiscard]] rows attention(const rows& x, std::size_t layer) const {
    constexpr std::size_t dim = tiny_shape::head_dim;
    const std::string at = "blk." + std::to_string(layer) + ".";
    const bool local = !shape_.slides.empty() && shape_.slides[layer];
    rows q = product(x, at + "attn_q");
    rows k = product(x, at + "attn_k");
    rows v = product(x, at + "attn_v");
    turn(q, at + "attn_q_norm.weight", local);
    turn(k, at + "attn_k_norm.weight", local);
    round_as_kept(k);
    round_as_kept(v);
    rows out(x.size(), row(q[0].size()));
    for (std::size_t t = 0; t < x.size(); ++t) {
      const std::size_t first = local && t + 1 > shape_.window ? t + 1 - shape_.window : 0;
      for (std::size_t h = 0; h < shape_.heads; ++h) {
        const std::size_t shared = h / (shape_.heads / shape_.kv_heads) * dim;
        row weights;
        double total = 0;
        for (std::size_t s = first; s <= t; ++s) {
          double score = 0;
          for (std::size_t i = 0; i < dim; ++i) score += q[t][h * dim + i] * k[s][shared + i];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
          total += weights.back();
        }
        for (std::size_t s = first; s <= t; ++s) {
          const double share = weights[s - first] / total;
          for (std::size_t i = 0; i < dim; ++i) out[t][h * dim + i] += share * v[s][shared + i];
        }
      }
    }
    return product(out, at + "attn_output");
  }

  [[nodiscard]] rows feed_forward(const rows& x, const std::string& at) const {
    rows gate = product(x, at + "ffn_gate");
    const rows up = product(x, at + "ffn_up");
    for (std::size_t t = 0; t < gate.size(); ++t) {
      for (std::size_t i = 0; i < gate[t].size(); ++i) {
        const double g = gate[t][i];
        const double inner = std::sqrt(2 / 3.14159265358979323846) * (g + 0.044715 * g * g * g);
        gate[t][i] =
            up[t][i] * (shape_.gemma ? 0.5 * g * (1 + std::tanh(inner)) : g / (1 + std::exp(-g)));
      }
    }
    return product(gate, at + "ffn_down");
  }

  tiny_shape shape_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  model::gguf_writer writer_;
  model::test_folder folder_;
  std::string file_;
  std::map<std::string, row> values_;
};

/// Random ordinary tokens.
inline std::vector<token_id> random_tokens(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<token_id> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<token_id>(3 + random() % (tiny_shape::vocabulary - 3)));
  }
  return tokens;
}

}  // namespace octavo::cpu
