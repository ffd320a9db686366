// Reads and writes `octavo.profile/1`.
#include "sim/cost/profile.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"

namespace octavo::sim {
namespace {

using nlohmann::json;

class profile_reader {
 public:
  profile_reader(const json& document, std::string where)
      : document_(document), where_(std::move(where)) {}

  [[nodiscard]] profile read() const {
    if (document_.value("format", json{}) != "octavo.profile/1") {
      fail("format", "must be \"octavo.profile/1\"");
    }
    profile result;
    result.provenance = text("provenance");
    result.model = text("model");
    result.gpu = text("gpu");
    result.tp = static_cast<int>(count(document_, "tp"));
    result.layers = count(document_, "layers");
    result.hidden_size = count(document_, "hidden_size");
    if (document_.contains("weights")) {
      result.weights = model::parse_weight_format(text("weights"));
    }
    if (document_.contains("kv")) result.kv = model::parse_kv_dtype(text("kv"));
    result.dense = operations("dense", "tokens");
    if (document_.contains("per_sequence")) {
      result.per_sequence = operations("per_sequence", "sequences");
    }
    result.attention_decode = table<2>("attention_decode", {"sequences", "context"});
    result.attention_prefill = table<2>("attention_prefill", {"tokens", "context"});
    if (document_.contains("attention_mixed")) {
      result.attention_mixed = table<4>("attention_mixed", {"prefill_tokens", "prefill_context",
                                                            "decode_sequences", "decode_context"});
    }
    if (document_.contains("skew")) {
      const json& skew = section("skew");
      result.alpha_decode = make<1>(skew, {"sequences"}, "alpha_decode", any_sign);
      result.alpha_mixed = make<1>(skew, {"sequences"}, "alpha_mixed", any_sign);
    }
    if (document_.contains("host")) {
      const json& host = section("host");
      result.host_step_us = number(host, "step_us");
      result.host_sequence_us = number(host, "sequence_us");
    }
    return result;
  }

 private:
  static constexpr bool any_sign = true;

  [[noreturn]] void fail(const std::string& key, const std::string& why) const {
    throw input_error(where_ + ": field \"" + key + "\" " + why);
  }

  [[nodiscard]] std::string text(const char* key) const {
    if (!document_.contains(key) || !document_.at(key).is_string()) fail(key, "must be a string");
    return document_.at(key).get<std::string>();
  }

  [[nodiscard]] std::int64_t count(const json& object, const char* key) const {
    if (!object.contains(key) || !object.at(key).is_number_integer() ||
        object.at(key).get<std::int64_t>() < 1 || object.at(key).get<std::int64_t>() > 1'000'000) {
      fail(key, "must be a whole number from 1 to 1000000");
    }
    return object.at(key).get<std::int64_t>();
  }

  [[nodiscard]] double number(const json& object, const char* key) const {
    if (!object.contains(key) || !object.at(key).is_number() ||
        !(object.at(key).get<double>() >= 0)) {
      fail(key, "must be a number that is not negative");
    }
    return object.at(key).get<double>();
  }

  [[nodiscard]] const json& section(const char* key) const {
    if (!document_.contains(key) || !document_.at(key).is_object()) fail(key, "must be an object");
    return document_.at(key);
  }

  [[nodiscard]] std::vector<double> numbers(const json& object, const char* key,
                                            bool negative_too = false) const {
    if (!object.contains(key) || !object.at(key).is_array() || object.at(key).empty()) {
      fail(key, "must be a list of numbers");
    }
    std::vector<double> result;
    for (const json& value : object.at(key)) {
      if (!value.is_number() || !std::isfinite(value.get<double>())) {
        fail(key, "holds " + value.dump() + "; numbers are needed");
      }
      if (!negative_too && value.get<double>() < 0) fail(key, "holds a negative number");
      result.push_back(value.get<double>());
    }
    return result;
  }

  template <std::size_t N>
  [[nodiscard]] grid<N> make(const json& object, const std::array<const char*, N>& axis_names,
                             const char* values_name, bool negative_too = false) const {
    std::array<grid_axis, N> axes;
    std::size_t size = 1;
    for (std::size_t d = 0; d < N; ++d) {
      std::vector<double> points = numbers(object, axis_names[d]);
      const auto rises = [](double a, double b) { return a >= b; };
      if (std::adjacent_find(points.begin(), points.end(), rises) != points.end()) {
        fail(axis_names[d], "must rise from each number to the next");
      }
      size *= points.size();
      axes[d] = grid_axis{std::move(points)};
    }
    std::vector<double> values = numbers(object, values_name, negative_too);
    if (values.size() != size) {
      fail(values_name, "holds " + std::to_string(values.size()) + " numbers where its axes need " +
                            std::to_string(size));
    }
    return grid<N>{std::move(axes), std::move(values)};
  }

  template <std::size_t N>
  [[nodiscard]] grid<N> table(const char* key, const std::array<const char*, N>& axis_names) const {
    return make<N>(section(key), axis_names, "us");
  }

  [[nodiscard]] std::vector<profile_operation> operations(const char* key, const char* axis) const {
    if (!document_.contains(key) || !document_.at(key).is_array()) fail(key, "must be a list");
    std::vector<profile_operation> result;
    for (const json& entry : document_.at(key)) {
      if (!entry.is_object() || !entry.contains("name") || !entry.at("name").is_string()) {
        fail(key, "must hold objects with a name");
      }
      result.push_back({entry.at("name").get<std::string>(), count(entry, "calls"),
                        make<1>(entry, {axis}, "us")});
    }
    return result;
  }

  const json& document_;
  std::string where_;
};

/// Measured times have no more than a nanosecond in them.
json rounded(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(std::round(value * 1e4) / 1e4);
  return list;
}

json points(const grid_axis& axis) {
  json list = json::array();
  for (const double value : axis.points()) list.push_back(std::llround(value));
  return list;
}

template <std::size_t N>
json table_json(const grid<N>& table, const std::array<const char*, N>& axis_names) {
  json object;
  for (std::size_t d = 0; d < N; ++d) object[axis_names[d]] = points(table.axes()[d]);
  object["us"] = rounded(table.values());
  return object;
}

json operations_json(const std::vector<profile_operation>& operations, const char* axis) {
  json list = json::array();
  for (const profile_operation& operation : operations) {
    json entry = table_json<1>(operation.us, {axis});
    entry["name"] = operation.name;
    entry["calls"] = operation.calls;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

profile parse_profile(std::string_view text, std::string_view where) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) {
    throw input_error(std::string{where} + ": a JSON object (octavo.profile/1) is expected");
  }
  return profile_reader{document, std::string{where}}.read();
}

profile read_profile(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw input_error(path + ": cannot be opened");
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  return parse_profile(text, path);
}

std::string to_json(const profile& source) {
  json document{{"format", "octavo.profile/1"},
                {"provenance", source.provenance},
                {"model", source.model},
                {"gpu", source.gpu},
                {"tp", source.tp},
                {"layers", source.layers},
                {"hidden_size", source.hidden_size}};
  document["weights"] = model::to_string(source.weights);
  document["kv"] = model::to_string(source.kv);
  document["dense"] = operations_json(source.dense, "tokens");
  document["per_sequence"] = operations_json(source.per_sequence, "sequences");
  document["attention_decode"] = table_json<2>(source.attention_decode, {"sequences", "context"});
  document["attention_prefill"] = table_json<2>(source.attention_prefill, {"tokens", "context"});
  if (!source.attention_mixed.empty()) {
    document["attention_mixed"] =
        table_json<4>(source.attention_mixed,
                      {"prefill_tokens", "prefill_context", "decode_sequences", "decode_context"});
  }
  if (!source.alpha_decode.empty()) {
    document["skew"] = {{"sequences", points(source.alpha_decode.axes()[0])},
                        {"alpha_decode", rounded(source.alpha_decode.values())},
                        {"alpha_mixed", rounded(source.alpha_mixed.values())}};
  }
  document["host"] = {{"step_us", source.host_step_us}, {"sequence_us", source.host_sequence_us}};
  std::ostringstream out;
  out << "{\n";
  bool first = true;
  for (const auto& [key, value] : document.items()) {
    out << (first ? "" : ",\n") << json(key).dump() << ": " << value.dump();
    first = false;
  }
  out << "\n}\n";
  return out.str();
}

}  // namespace octavo::sim
