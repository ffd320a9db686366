// Reads GPU data files.
#include "sim/catalogue/gpu.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace octavo::sim {
namespace {

using nlohmann::json;

class gpu_reader {
 public:
  gpu_reader(const json& document, std::string where)
      : document_(document), where_(std::move(where)) {}

  [[nodiscard]] std::string text(const json& object, const char* key) const {
    if (!object.contains(key) || !object.at(key).is_string()) fail(key, "must be a string");
    return object.at(key).get<std::string>();
  }

  /// A number, or {"value": number, "source": text} as the catalogue has it.
  [[nodiscard]] double number(const json& object, const char* key) const {
    if (!object.contains(key)) fail(key, "is missing");
    const json& entry = object.at(key);
    const bool sourced = entry.is_object() && entry.contains("value");
    const json& value = sourced ? entry.at("value") : entry;
    if (!value.is_number()) fail(key, "must be a number or {\"value\": …, \"source\": …}");
    const double result = value.get<double>();
    if (!(result >= 0 && result <= 1e16)) fail(key, "must be between 0 and 1e16");
    return result;
  }

  [[nodiscard]] double positive(const json& object, const char* key, double least = 1e-9) const {
    const double value = number(object, key);
    if (value < least) fail(key, "must be above 0");
    return value;
  }

  [[nodiscard]] double number_or(const json& object, const char* key, double fallback) const {
    return object.contains(key) ? number(object, key) : fallback;
  }

  /// A share of a peak. Compute can exceed the peak on paper by a little, where
  /// cards clock above their nominal boost.
  void share(const json& object, const char* key, double& target) const {
    target = number_or(object, key, target);
    if (target <= 0 || target > 1.25) fail(key, "must be above 0 and at most 1.25");
  }

  void time_us(const json& object, const char* key, double& target) const {
    target = number_or(object, key, target);
  }

  [[nodiscard]] gpu_efficiency efficiency() const {
    gpu_efficiency result;
    if (!document_.contains("efficiency")) return result;
    const json& part = document_.at("efficiency");
    time_us(part, "gemm_floor_us", result.gemm_floor_us);
    time_us(part, "gemm_floor_8bit_us", result.gemm_floor_8bit_us);
    time_us(part, "decode_floor_us", result.decode_floor_us);
    time_us(part, "decode_item_us", result.decode_item_us);
    time_us(part, "decode_split_us", result.decode_split_us);
    time_us(part, "ring_latency_us", result.ring_latency_us);
    time_us(part, "prefill_floor_us", result.prefill_floor_us);
    time_us(part, "elementwise_floor_us", result.elementwise_floor_us);
    share(part, "gemm_bandwidth", result.gemm_bandwidth);
    share(part, "gemm_compute", result.gemm_compute);
    share(part, "gemm_compute_8bit", result.gemm_compute_8bit);
    share(part, "decode_bandwidth", result.decode_bandwidth);
    share(part, "prefill_compute", result.prefill_compute);
    share(part, "elementwise_bandwidth", result.elementwise_bandwidth);
    share(part, "allreduce_link", result.allreduce_link);
    share(part, "ring_link", result.ring_link);
    return result;
  }

  [[nodiscard]] gpu_spec read() const {
    if (!document_.contains("format") || document_.at("format") != "octavo.gpu/1") {
      fail("format", "must be \"octavo.gpu/1\"");
    }
    gpu_spec gpu;
    gpu.name = text(document_, "name");
    gpu.title = document_.contains("title") ? text(document_, "title") : gpu.name;
    gpu.processors = static_cast<std::int64_t>(positive(document_, "processors", 1));
    gpu.fp16_flops = positive(document_, "peak_fp16_tflops") * 1e12;
    gpu.fp8_flops = number_or(document_, "peak_fp8_tflops", 0) * 1e12;
    gpu.int8_ops = number_or(document_, "peak_int8_tops", 0) * 1e12;
    gpu.memory_bytes = static_cast<std::int64_t>(positive(document_, "memory_bytes", 1));
    gpu.bandwidth = positive(document_, "bandwidth_gb_per_s") * 1e9;
    if (!document_.contains("link") || !document_.at("link").is_object()) {
      fail("link", "must be an object with kind, gb_per_s_per_direction and latency_us");
    }
    const json& link = document_.at("link");
    gpu.link_kind = text(link, "kind");
    gpu.link_bandwidth = positive(link, "gb_per_s_per_direction") * 1e9;
    gpu.link_latency_us = number(link, "latency_us");
    gpu.price_usd_per_hour = number_or(document_, "price_usd_per_hour", 0);
    gpu.efficiency = efficiency();
    return gpu;
  }

 private:
  [[noreturn]] void fail(const char* key, const std::string& why) const {
    throw input_error(where_ + ": field \"" + key + "\" " + why);
  }

  const json& document_;
  std::string where_;
};

}  // namespace

gpu_spec parse_gpu(std::string_view text, std::string_view where) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) {
    throw input_error(std::string{where} + ": a JSON object (octavo.gpu/1) is expected");
  }
  return gpu_reader{document, std::string{where}}.read();
}

}  // namespace octavo::sim
