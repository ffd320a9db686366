// Sums up a model on disk; see the header. The table is made from the JSON, so
// that both say the same.
#include "model/inspect.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"
#include "model/quantized/dequantize.hpp"
#include "model/strict_json.hpp"

namespace octavo::model {
namespace {

using nlohmann::ordered_json;

constexpr std::uintmax_t tokenizer_bytes_max = 100'000'000;

/// Text from a file as it may be shown: control characters become ?.
std::string shown(std::string_view text) {
  std::string clean(text.substr(0, 200));
  for (char& c : clean) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return clean;
}

ordered_json gguf_tokenizer(const gguf_metadata& metadata) {
  const std::string kind(metadata.text_or("tokenizer.ggml.model", "none"));
  ordered_json result;
  result["kind"] = kind == "gpt2"    ? "byte-level BPE"
                   : kind == "llama" ? "SentencePiece BPE"
                                     : shown(kind);
  if (metadata.has("tokenizer.ggml.pre")) {
    result["pre_tokenizer"] = shown(metadata.text("tokenizer.ggml.pre"));
  }
  if (metadata.has("tokenizer.ggml.tokens")) {
    result["tokens"] = metadata.strings("tokenizer.ggml.tokens").size();
  }
  result["chat_template"] = metadata.has("tokenizer.chat_template");
  return result;
}

ordered_json directory_tokenizer(const checkpoint& model) {
  ordered_json result;
  const std::string path = model.companion("tokenizer.json");
  result["kind"] = "none";
  if (!path.empty()) {
    const auto document = load_json_file(path, tokenizer_bytes_max);
    const auto at = [&](const char* pointer) {
      const nlohmann::json::json_pointer place(pointer);
      return document.contains(place) ? document.at(place) : nlohmann::json();
    };
    result["kind"] = at("/model/type").is_string() ? shown(at("/model/type").get<std::string>())
                                                   : "tokenizer.json";
    result["tokens"] = at("/model/vocab").size();
  }
  bool chat = !model.companion("chat_template.jinja").empty();
  if (const std::string config = model.companion("tokenizer_config.json"); !config.empty()) {
    chat = chat || load_json_file(config, tokenizer_bytes_max).contains("chat_template");
  }
  result["chat_template"] = chat;
  return result;
}

/// 1e6 -> "1000000", 2.5 -> "2.5".
std::string plain(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

std::string scaling_text(const rope_config& rope) {
  const std::string factor = plain(rope.factor);
  switch (rope.scaling) {
    case rope_scaling::none:
      return rope.divisors.empty() ? "none" : "by a table in the weights";
    case rope_scaling::linear:
      return "linear, by " + factor;
    case rope_scaling::llama3:
      return "llama3, by " + factor;
    case rope_scaling::yarn:
      return "yarn, by " + factor;
    case rope_scaling::other:
      break;
  }
  return shown(rope.scaling_name) + " (cannot be run)";
}

ordered_json shape_json(const model_config& config) {
  ordered_json shape;
  shape["parameters"] = config.parameters();
  shape["layers"] = config.layers;
  shape["hidden_size"] = config.hidden_size;
  shape["heads"] = config.heads;
  shape["kv_heads"] = config.kv_heads;
  shape["head_dim"] = config.head_dim;
  shape["intermediate_size"] = config.intermediate_size;
  shape["vocab_size"] = config.vocab_size;
  shape["context"] = config.max_positions;
  shape["sliding_window"] = config.sliding_window;
  shape["sliding_layers"] = config.sliding_layers();
  shape["tied_embeddings"] = config.tied_embeddings;
  shape["rope_theta"] = config.rope.theta;
  shape["rope_scaling"] = scaling_text(config.rope);
  shape["kv_bytes_per_token_fp16"] = kv_bytes_per_token(config, kv_dtype::fp16, 1);
  return shape;
}

struct type_total {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::uint64_t bytes = 0;
};

ordered_json types_json(const checkpoint& model) {
  std::map<element_type, type_total> totals;
  for (const auto& [name, tensor] : model.tensors()) {
    type_total& total = totals[tensor.type];
    ++total.tensors;
    total.elements += tensor.elements();
    total.bytes += tensor.bytes.size();
  }
  ordered_json list = ordered_json::array();
  for (const auto& [type, total] : totals) {
    list.push_back({{"type", info(type).name},
                    {"tensors", total.tensors},
                    {"elements", total.elements},
                    {"bytes", total.bytes},
                    {"readable", is_readable(type) || type == element_type::i64}});
  }
  return list;
}

/// 98362432 -> "98.4 MB".
std::string megabytes(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), bytes < 1e9 ? "%.1f MB" : "%.2f GB",
                bytes / (bytes < 1e9 ? 1e6 : 1e9));
  return text.data();
}

std::string millions(double count) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), count < 1e9 ? "%.1f M" : "%.2f B",
                count / (count < 1e9 ? 1e6 : 1e9));
  return text.data();
}

void line(std::string& table, const std::string& label, const std::string& value) {
  std::array<char, 32> padded{};
  std::snprintf(padded.data(), padded.size(), "%-14s", label.c_str());
  table += std::string(padded.data()) + " " + value + "\n";
}

std::string number(const ordered_json& value) {
  return value.dump();
}

std::string types_table(const ordered_json& types, std::uint64_t all_bytes) {
  std::string table;
  std::array<char, 128> row{};
  std::snprintf(row.data(), row.size(), "\n%-12s %8s %14s %12s %7s\n", "type", "tensors",
                "elements", "bytes", "share");
  table += row.data();
  for (const ordered_json& type : types) {
    const double bytes = type.at("bytes").get<double>();
    std::snprintf(row.data(), row.size(), "%-12s %8s %14s %12s %6.1f%%%s\n",
                  type.at("type").get<std::string>().c_str(), number(type.at("tensors")).c_str(),
                  number(type.at("elements")).c_str(), megabytes(bytes).c_str(),
                  100 * bytes / static_cast<double>(all_bytes),
                  type.at("readable").get<bool>() ? "" : "  cannot be computed with");
    table += row.data();
  }
  return table;
}

}  // namespace

ordered_json inspection_json(const checkpoint& model) {
  const model_config& config = model.config();
  ordered_json result;
  result["path"] = model.path();
  result["form"] = model.gguf() != nullptr ? "GGUF v" + std::to_string(model.gguf()->version)
                                           : "Hugging Face directory";
  result["name"] = shown(config.name);
  result["architecture"] = shown(config.family);
  result.update(shape_json(config));
  result["quantization"] =
      model.gguf() != nullptr ? "by tensor, see types" : model.quantization().describe();
  result["tokenizer"] =
      model.gguf() != nullptr ? gguf_tokenizer(model.gguf()->metadata) : directory_tokenizer(model);
  result["stop_tokens"] = model.generation().stop_tokens;
  result["tensors"] = model.tensors().size();
  result["other_tensors"] = model.other_tensors().size();
  result["tensor_bytes"] = model.tensor_bytes();
  result["types"] = types_json(model);
  result["notes"] = ordered_json::array();
  for (const std::string& note : config.notes) result["notes"].push_back(shown(note));
  return result;
}

std::string inspection_table(const checkpoint& model) {
  const ordered_json j = inspection_json(model);
  const auto text = [&](const char* key) { return j.at(key).get<std::string>(); };
  const auto count = [&](const char* key) { return number(j.at(key)); };
  std::string table;
  line(table, "model", text("name") + " (" + text("architecture") + "), " + text("form"));
  line(table, "parameters",
       millions(j.at("parameters").get<double>()) + ", " +
           megabytes(j.at("tensor_bytes").get<double>()) + " in " + count("tensors") + " tensors");
  line(table, "shape",
       count("layers") + " layers, width " + count("hidden_size") + ", MLP " +
           count("intermediate_size") + ", vocabulary " + count("vocab_size") +
           (j.at("tied_embeddings").get<bool>() ? " (tied head)" : ""));
  line(table, "attention",
       count("heads") + " heads, " + count("kv_heads") + " for keys and values, of " +
           count("head_dim"));
  std::string context = count("context") + " tokens";
  if (j.at("sliding_layers").get<std::int64_t>() > 0) {
    context += "; " + count("sliding_layers") + " layers see the last " + count("sliding_window");
  }
  line(table, "context", context);
  line(table, "rotation",
       "base " + plain(j.at("rope_theta").get<double>()) + ", scaling " + text("rope_scaling"));
  line(table, "KV cache", count("kv_bytes_per_token_fp16") + " bytes a token in fp16");
  line(table, "quantization", text("quantization"));
  const ordered_json& tokenizer = j.at("tokenizer");
  std::string kind = tokenizer.at("kind").get<std::string>();
  if (tokenizer.contains("pre_tokenizer")) {
    kind += " (" + tokenizer.at("pre_tokenizer").get<std::string>() + ")";
  }
  if (tokenizer.contains("tokens")) kind += ", " + number(tokenizer.at("tokens")) + " tokens";
  line(table, "tokenizer",
       kind +
           (tokenizer.at("chat_template").get<bool>() ? ", chat template" : ", no chat template"));
  for (const ordered_json& note : j.at("notes")) line(table, "note", note.get<std::string>());
  return table + types_table(j.at("types"), model.tensor_bytes());
}

}  // namespace octavo::model
