// The GGUF parser; see gguf.hpp.
#include "model/container/gguf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

#include "model/container/byte_reader.hpp"

namespace octavo::model {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read in place");

constexpr std::uint64_t key_bytes_max = 65'535;
constexpr std::uint64_t name_bytes_max = 63;
constexpr std::uint32_t dims_max = 4;
constexpr int array_depth_max = 4;
constexpr std::uint64_t alignment_default = 32;
// The smallest encodings, which bound how many a file can hold: an empty key, a
// type and one byte; a name length, a dimension count, one dimension, a type
// and an offset.
constexpr std::uint64_t kv_bytes_min = 8 + 4 + 1;
constexpr std::uint64_t tensor_info_bytes_min = 8 + 4 + 8 + 4 + 8;

/// Bytes of a value of fixed size; 0 for strings and arrays.
std::uint64_t fixed_bytes(gguf_type type) {
  constexpr std::array<std::uint64_t, gguf_type_count> bytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return bytes[static_cast<std::size_t>(type)];
}

/// Names are shown to people and used as keys: no NUL, no control characters.
bool is_printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

/// a x b, or nothing where it exceeds what a signed 64-bit number holds.
std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

class parser {
 public:
  parser(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), where_(where), reader_(bytes, where) {
    file_.metadata = gguf_metadata(std::string(where));
  }

  gguf_file run() {
    read_header();
    for (std::uint64_t i = 0; i < kv_count_; ++i) read_kv(i);
    read_alignment();
    for (std::uint64_t i = 0; i < tensor_count_; ++i) read_tensor_info(i);
    place_tensors();
    check_overlap();
    return std::move(file_);
  }

 private:
  void read_header() {
    const auto magic = reader_.take(4, "magic");
    if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
      reader_.fail("magic", "is not \"GGUF\": this is no GGUF file");
    }
    file_.version = reader_.number<std::uint32_t>("version");
    if ((file_.version & 0xFFFFU) == 0) {
      reader_.fail("version", "has its bytes swapped: big-endian files are not supported");
    }
    if (file_.version != 2 && file_.version != 3) {
      reader_.fail("version", "is " + std::to_string(file_.version) + "; 2 and 3 are supported");
    }
    tensor_count_ = reader_.number<std::uint64_t>("tensor count");
    kv_count_ = reader_.number<std::uint64_t>("metadata count");
    check_count("tensor count", tensor_count_, tensor_info_bytes_min);
    check_count("metadata count", kv_count_, kv_bytes_min);
  }

  void check_count(std::string_view field, std::uint64_t count, std::uint64_t bytes_min) const {
    if (count > reader_.remaining() / bytes_min) {
      reader_.fail(field, "is " + std::to_string(count) + ", more than the " +
                              std::to_string(reader_.remaining()) + " bytes that follow can hold");
    }
  }

  void read_kv(std::uint64_t index) {
    const std::string number = "metadata key " + std::to_string(index);
    const std::string_view key = reader_.text(number);
    if (key.empty()) reader_.fail(number, "is empty");
    if (key.size() > key_bytes_max) {
      reader_.fail(number, "is longer than " + std::to_string(key_bytes_max) + " bytes");
    }
    if (!is_printable(key)) reader_.fail(number, "holds control characters");
    const std::string field = "metadata key \"" + std::string(key) + "\"";
    const gguf_type type = read_type(field);
    if (!file_.metadata.insert(key, read_value(type, field))) reader_.fail(field, "occurs twice");
  }

  gguf_type read_type(const std::string& field) {
    const auto number = reader_.number<std::uint32_t>(field);
    if (number >= gguf_type_count) {
      reader_.fail(field, "has value type " + std::to_string(number) + "; 0 to 12 are defined");
    }
    return static_cast<gguf_type>(number);
  }

  template <class Stored, class Kept>
  gguf_value number_value(gguf_type type, const std::string& field) {
    return {type, static_cast<Kept>(reader_.number<Stored>(field))};
  }

  gguf_value read_value(gguf_type type, const std::string& field) {
    switch (type) {
      case gguf_type::u8:
        return number_value<std::uint8_t, std::uint64_t>(type, field);
      case gguf_type::i8:
        return number_value<std::int8_t, std::int64_t>(type, field);
      case gguf_type::u16:
        return number_value<std::uint16_t, std::uint64_t>(type, field);
      case gguf_type::i16:
        return number_value<std::int16_t, std::int64_t>(type, field);
      case gguf_type::u32:
        return number_value<std::uint32_t, std::uint64_t>(type, field);
      case gguf_type::i32:
        return number_value<std::int32_t, std::int64_t>(type, field);
      case gguf_type::f32:
        return number_value<float, double>(type, field);
      case gguf_type::boolean:
        return {type, read_bool(field)};
      case gguf_type::string:
        return {type, reader_.text(field)};
      case gguf_type::array:
        return {type, read_array(field, 1)};
      case gguf_type::u64:
        return number_value<std::uint64_t, std::uint64_t>(type, field);
      case gguf_type::i64:
        return number_value<std::int64_t, std::int64_t>(type, field);
      case gguf_type::f64:
        break;
    }
    return number_value<double, double>(type, field);
  }

  bool read_bool(const std::string& field) {
    const auto byte = reader_.number<std::uint8_t>(field);
    if (byte > 1) {
      reader_.fail(field, "is a bool of value " + std::to_string(byte) + "; 0 and 1 are allowed");
    }
    return byte == 1;
  }

  /// Walks over the elements, so that views into the array need no checks.
  gguf_array read_array(const std::string& field, int depth) {
    if (depth > array_depth_max) {
      reader_.fail(field, "nests arrays deeper than " + std::to_string(array_depth_max));
    }
    gguf_array array;
    array.element = read_type(field + " (array)");
    array.count = reader_.number<std::uint64_t>(field);
    const std::uint64_t fixed = fixed_bytes(array.element);
    const std::uint64_t least = fixed > 0 ? fixed : (array.element == gguf_type::string ? 8 : 12);
    check_count(field + " (array length)", array.count, least);
    const std::size_t begin = reader_.position();
    if (array.element == gguf_type::boolean) {
      for (std::uint64_t i = 0; i < array.count; ++i) read_bool(field);
    } else if (fixed > 0) {
      reader_.take(array.count * fixed, field);
    } else {
      for (std::uint64_t i = 0; i < array.count; ++i) {
        if (array.element == gguf_type::string) {
          reader_.text(field);
        } else {
          read_array(field, depth + 1);
        }
      }
    }
    array.raw = bytes_.subspan(begin, reader_.position() - begin);
    return array;
  }

  void read_alignment() {
    constexpr std::string_view key = "general.alignment";
    file_.alignment = alignment_default;
    const gguf_value* value = file_.metadata.find(key);
    if (value == nullptr) return;
    if (value->type != gguf_type::u32) {
      file_.metadata.fail(key,
                          "has type " + std::string(to_string(value->type)) + "; it must be u32");
    }
    file_.alignment = std::get<std::uint64_t>(value->content);
    if (!std::has_single_bit(file_.alignment)) {
      file_.metadata.fail(key,
                          "is " + std::to_string(file_.alignment) + "; a power of two is needed");
    }
  }

  void read_tensor_info(std::uint64_t index) {
    const std::string number = "tensor name " + std::to_string(index);
    gguf_tensor tensor;
    tensor.name = reader_.text(number);
    if (tensor.name.empty()) reader_.fail(number, "is empty");
    if (tensor.name.size() > name_bytes_max) {
      reader_.fail(number, "is longer than " + std::to_string(name_bytes_max) + " bytes");
    }
    if (!is_printable(tensor.name)) reader_.fail(number, "holds control characters");
    const std::string field = "tensor \"" + tensor.name + "\"";
    if (!file_.tensor_index.emplace(tensor.name, file_.tensors.size()).second) {
      reader_.fail(field, "occurs twice");
    }
    read_dims(tensor, field);
    const auto type = reader_.number<std::uint32_t>(field + " type");
    const auto known = gguf_element_type(type);
    if (!known) reader_.fail(field, "has type " + std::to_string(type) + ", which is not defined");
    tensor.type = *known;
    sizes_.push_back(size_of(tensor, field));
    offsets_.push_back(reader_.number<std::uint64_t>(field + " offset"));
    file_.tensors.push_back(std::move(tensor));
  }

  void read_dims(gguf_tensor& tensor, const std::string& field) {
    const auto count = reader_.number<std::uint32_t>(field + " number of dimensions");
    if (count < 1 || count > dims_max) {
      reader_.fail(field, "has " + std::to_string(count) + " dimensions; 1 to 4 are allowed");
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string dimension = field + " dimension " + std::to_string(i);
      const auto size = reader_.number<std::uint64_t>(dimension);
      if (size == 0) reader_.fail(dimension, "is 0");
      if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        reader_.fail(dimension, "is " + std::to_string(size) + ", which is too large");
      }
      tensor.dims.push_back(static_cast<std::int64_t>(size));
    }
  }

  std::uint64_t size_of(const gguf_tensor& tensor, const std::string& field) const {
    const element_type_info& type = info(tensor.type);
    if (tensor.dims.front() % type.block_elements != 0) {
      reader_.fail(field + " dimension 0",
                   "is " + std::to_string(tensor.dims.front()) + ", not a multiple of the " +
                       std::to_string(type.block_elements) + " elements of a " +
                       std::string(type.name) + " block");
    }
    std::optional<std::int64_t> elements = 1;
    for (const std::int64_t size : tensor.dims) {
      if (elements) elements = product(*elements, size);
    }
    const auto bytes =
        elements ? product(*elements / type.block_elements, type.block_bytes) : std::nullopt;
    if (!bytes) reader_.fail(field, "has dimensions whose product is too large");
    return static_cast<std::uint64_t>(*bytes);
  }

  void place_tensors() {
    const std::uint64_t end = reader_.position();
    file_.data_offset = (end + file_.alignment - 1) / file_.alignment * file_.alignment;
    if (file_.tensors.empty()) return;
    if (file_.data_offset > bytes_.size()) {
      reader_.fail("data section", "begins at byte " + std::to_string(file_.data_offset) +
                                       ", and the file ends at " + std::to_string(bytes_.size()));
    }
    const auto data = bytes_.subspan(file_.data_offset);
    for (std::size_t i = 0; i < file_.tensors.size(); ++i) {
      gguf_tensor& tensor = file_.tensors[i];
      const std::string field = "tensor \"" + tensor.name + "\" offset";
      if (offsets_[i] % file_.alignment != 0) {
        reader_.fail(field, "is " + std::to_string(offsets_[i]) + ", not a multiple of " +
                                std::to_string(file_.alignment));
      }
      if (offsets_[i] > data.size() || sizes_[i] > data.size() - offsets_[i]) {
        reader_.fail(field, "is " + std::to_string(offsets_[i]) + " and its " +
                                std::to_string(sizes_[i]) + " bytes end beyond the data's " +
                                std::to_string(data.size()) + ": the file is cut or malformed");
      }
      tensor.bytes = data.subspan(offsets_[i], sizes_[i]);
    }
  }

  void check_overlap() const {
    std::vector<const gguf_tensor*> order;
    for (const gguf_tensor& tensor : file_.tensors) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [](const gguf_tensor* a, const gguf_tensor* b) {
      return a->bytes.data() < b->bytes.data();
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const auto& before = order[i - 1]->bytes;
      if (before.data() + before.size() > order[i]->bytes.data()) {
        reader_.fail("tensor \"" + order[i]->name + "\"",
                     "overlaps tensor \"" + order[i - 1]->name + "\"");
      }
    }
  }

  std::span<const std::byte> bytes_;
  std::string_view where_;
  byte_reader reader_;
  gguf_file file_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t kv_count_ = 0;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace

const gguf_tensor* gguf_file::find(std::string_view name) const {
  const auto found = tensor_index.find(name);
  return found == tensor_index.end() ? nullptr : &tensors[found->second];
}

gguf_file parse_gguf(std::span<const std::byte> bytes, std::string_view where) {
  return parser(bytes, where).run();
}

}  // namespace octavo::model
