// Tests only: safetensors files from a header's text or from tensors.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace octavo::model {

/// A header of any text in front of any data.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

class safetensors_writer {
 public:
  safetensors_writer& tensor(const std::string& name, const std::string& dtype,
                             const std::vector<std::int64_t>& shape, const std::string& bytes) {
    std::string sizes;
    for (const std::int64_t size : shape) {
      sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    }
    header_ += (header_.empty() ? "\"" : ",\"") + name + R"(":{"dtype":")" + dtype +
               R"(","shape":[)" + sizes + R"(],"data_offsets":[)" + std::to_string(data_.size()) +
               "," + std::to_string(data_.size() + bytes.size()) + "]}";
    data_ += bytes;
    return *this;
  }
  [[nodiscard]] std::string file() const { return safetensors_file("{" + header_ + "}", data_); }

 private:
  std::string header_;
  std::string data_;
};

}  // namespace octavo::model
