// The safetensors parser; see safetensors.hpp.
#include "model/container/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/strict_json.hpp"

namespace octavo::model {
namespace {

using nlohmann::json;

constexpr std::uint64_t header_bytes_max = 100'000'000;
constexpr std::uint64_t number_max = 1ULL << 53U;
constexpr std::size_t rank_max = 8;
constexpr std::size_t name_bytes_max = 1024;
// The header, one tensor's object, and its lists.
constexpr int depth_max = 3;

struct placed_tensor {
  stored_tensor tensor;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Reads the object of one tensor.
class entry_reader {
 public:
  entry_reader(const std::string& where, const std::string& name, const json& entry)
      : entry_(entry), where_(where + ": tensor \"" + name + "\"") {
    if (name.empty() || name.size() > name_bytes_max) {
      throw input_error(where + ": a tensor name of " + std::to_string(name.size()) +
                        " bytes; 1 to " + std::to_string(name_bytes_max) + " are allowed");
    }
    if (!entry.is_object()) fail("must be an object");
    for (const auto& [key, unused] : entry.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail("has an unknown field \"" + key + "\"");
      }
    }
    placed_.tensor.name = name;
  }

  placed_tensor run() {
    read_type();
    const std::uint64_t bytes = read_shape();
    const auto offsets = numbers("data_offsets");
    if (offsets.size() != 2) fail("field \"data_offsets\" must be [begin, end]");
    placed_.begin = offsets[0];
    placed_.end = offsets[1];
    if (placed_.begin > placed_.end || placed_.end - placed_.begin != bytes) {
      fail("field \"data_offsets\" is " + entry_.at("data_offsets").dump() + "; shape " +
           to_string(placed_.tensor.shape) + " of " + std::string(info(placed_.tensor.type).name) +
           " takes " + std::to_string(bytes) + " bytes");
    }
    return std::move(placed_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw input_error(where_ + " " + why); }

  const json& field(const char* key) const {
    const auto found = entry_.find(key);
    if (found == entry_.end()) fail(std::string("has no field \"") + key + "\"");
    return *found;
  }

  void read_type() {
    const json& name = field("dtype");
    const auto type = name.is_string()
                          ? safetensors_element_type(name.get_ref<const std::string&>())
                          : std::nullopt;
    if (!type) fail("field \"dtype\" is " + name.dump() + ", which is not known");
    placed_.tensor.type = *type;
  }

  std::vector<std::uint64_t> numbers(const char* key) const {
    const json& list = field(key);
    if (!list.is_array()) fail(std::string("field \"") + key + "\" must be a list");
    std::vector<std::uint64_t> result;
    for (const json& element : list) {
      if (!element.is_number_unsigned() || element.get<std::uint64_t>() >= number_max) {
        fail(std::string("field \"") + key + "\" holds " + element.dump() +
             "; whole numbers from 0 are allowed");
      }
      result.push_back(element.get<std::uint64_t>());
    }
    return result;
  }

  /// Sets the shape and returns the bytes that it takes.
  std::uint64_t read_shape() {
    const auto shape = numbers("shape");
    if (shape.size() > rank_max) {
      fail("has " + std::to_string(shape.size()) + " dimensions; up to " +
           std::to_string(rank_max) + " are allowed");
    }
    std::uint64_t bytes = static_cast<std::uint64_t>(info(placed_.tensor.type).block_bytes);
    for (const std::uint64_t size : shape) {
      if (__builtin_mul_overflow(bytes, size, &bytes) || bytes >= number_max) {
        fail("field \"shape\" has a product that is too large");
      }
      placed_.tensor.shape.push_back(static_cast<std::int64_t>(size));
    }
    return bytes;
  }

  const json& entry_;
  std::string where_;
  placed_tensor placed_;
};

void check_metadata(const json& metadata, const std::string& where) {
  const bool sound =
      metadata.is_object() && std::all_of(metadata.begin(), metadata.end(),
                                          [](const json& value) { return value.is_string(); });
  if (!sound) throw input_error(where + ": field \"__metadata__\" must be an object of strings");
}

/// The header's text and where the data begin.
std::string_view header_of(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() < 8) {
    throw input_error(where + ": has " + std::to_string(bytes.size()) +
                      " bytes; the header length alone takes 8");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (length < 2 || length > header_bytes_max || length > bytes.size() - 8) {
    throw input_error(where + ": header length is " + std::to_string(length) + "; from 2 to " +
                      std::to_string(std::min<std::uint64_t>(header_bytes_max, bytes.size() - 8)) +
                      " is possible for this file");
  }
  const std::string_view header{reinterpret_cast<const char*>(bytes.data()) + 8, length};
  if (header.front() != '{') throw input_error(where + ": the header does not begin with {");
  return header;
}

/// Sorted by place: each must begin where the one before ended, and the last
/// must end with the file.
void check_coverage(std::vector<placed_tensor>& tensors, std::uint64_t data_bytes,
                    const std::string& where) {
  std::sort(tensors.begin(), tensors.end(), [](const placed_tensor& a, const placed_tensor& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::uint64_t expected = 0;
  for (const placed_tensor& placed : tensors) {
    if (placed.begin != expected) {
      throw input_error(where + ": tensor \"" + placed.tensor.name + "\" begins at byte " +
                        std::to_string(placed.begin) + " of the data; " +
                        (placed.begin < expected ? "it overlaps the one before, which ends at "
                                                 : "the one before ends at ") +
                        std::to_string(expected));
    }
    expected = placed.end;
  }
  if (expected != data_bytes) {
    throw input_error(where + ": the header describes " + std::to_string(expected) +
                      " bytes of data, and the file has " + std::to_string(data_bytes) +
                      (expected > data_bytes ? ": it is cut short" : ""));
  }
}

}  // namespace

std::vector<stored_tensor> parse_safetensors(std::span<const std::byte> bytes,
                                             std::string_view where) {
  const std::string file(where);
  const std::string_view header = header_of(bytes, file);
  const json document = parse_strict_json(header, file + " (header)", depth_max);
  std::vector<placed_tensor> placed;
  for (const auto& [name, entry] : document.items()) {
    if (name == "__metadata__") {
      check_metadata(entry, file);
    } else {
      placed.push_back(entry_reader(file, name, entry).run());
    }
  }
  const auto data = bytes.subspan(8 + header.size());
  check_coverage(placed, data.size(), file);
  std::vector<stored_tensor> tensors;
  for (placed_tensor& one : placed) {
    one.tensor.bytes = data.subspan(one.begin, one.end - one.begin);
    tensors.push_back(std::move(one.tensor));
  }
  return tensors;
}

shard_map parse_shard_index(std::string_view text, const std::string& where) {
  const json document = parse_strict_json(text, where, depth_max);
  const auto map = document.is_object() ? document.find("weight_map") : document.end();
  if (!document.is_object() || map == document.end() || !map->is_object()) {
    throw input_error(where + ": field \"weight_map\" must be an object");
  }
  shard_map shards;
  for (const auto& [tensor, shard] : map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    const bool plain = !name.empty() &&
                       name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos &&
                       name.find("..") == std::string::npos;
    if (!plain) {
      throw input_error(where + ": tensor \"" + tensor + "\" lies in " + shard.dump() +
                        "; a plain file name is expected");
    }
    shards.emplace(tensor, name);
  }
  return shards;
}

}  // namespace octavo::model
