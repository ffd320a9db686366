// Tests only: expected values that other implementations computed, as JSON with
// bytes and little-endian floats in hexadecimal.
#pragma once

#include <cstddef>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace octavo::model {

/// A file of model/quantized/fixtures/.
inline nlohmann::json load_fixture(const std::string& name) {
  const std::string path = std::string(OCTAVO_SOURCE_DIR) + "/model/quantized/fixtures/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " is missing");
  return nlohmann::json::parse(file);
}

inline std::vector<std::byte> hex_bytes(const std::string& text) {
  std::vector<std::byte> bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

inline std::vector<float> hex_floats(const std::string& text) {
  const auto bytes = hex_bytes(text);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace octavo::model
