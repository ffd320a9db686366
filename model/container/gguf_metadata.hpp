// The key-value part of a GGUF file: typed access with errors that name the
// file and the key. Strings and arrays are views into the file's bytes.
//
//   metadata.count("llama.block_count", 10'000);
//   metadata.number_or("llama.rope.freq_base", 10'000);
//   metadata.strings("tokenizer.ggml.tokens");
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace octavo::model {

/// Value types, numbered as in the file.
enum class gguf_type : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

inline constexpr std::uint32_t gguf_type_count = 13;

[[nodiscard]] std::string_view to_string(gguf_type type);

/// `count` elements as they lie in the file, already checked to be complete.
struct gguf_array {
  gguf_type element{};
  std::uint64_t count = 0;
  std::span<const std::byte> raw;
};

struct gguf_value {
  gguf_type type{};
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, gguf_array> content;
};

/// All accessors throw input_error naming file, key, what is there and what is
/// allowed. Those without `_or` also throw where the key is missing.
class gguf_metadata {
 public:
  explicit gguf_metadata(std::string where) : where_(std::move(where)) {}

  /// False where the key is there already.
  bool insert(std::string_view key, gguf_value value);

  [[nodiscard]] const gguf_value* find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] const std::map<std::string, gguf_value, std::less<>>& values() const {
    return values_;
  }
  /// The file's name in messages.
  [[nodiscard]] const std::string& where() const { return where_; }

  /// A whole number of any integer type, from 0 to `most`.
  [[nodiscard]] std::int64_t whole(std::string_view key, std::int64_t most) const;
  [[nodiscard]] std::int64_t whole_or(std::string_view key, std::int64_t most,
                                      std::int64_t fallback) const;
  /// A whole number from 1 to `most`; an array whose elements all agree counts
  /// as the one number (files store some sizes once per layer).
  [[nodiscard]] std::int64_t count(std::string_view key, std::int64_t most) const;
  [[nodiscard]] std::int64_t count_or(std::string_view key, std::int64_t most,
                                      std::int64_t fallback) const;
  /// A finite number of any numeric type.
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] double number_or(std::string_view key, double fallback) const;
  [[nodiscard]] bool flag_or(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string_view text(std::string_view key) const;
  [[nodiscard]] std::string_view text_or(std::string_view key, std::string_view fallback) const;

  /// Arrays of strings, of f32 or f64, of any integer type, and of bool.
  [[nodiscard]] std::vector<std::string_view> strings(std::string_view key) const;
  [[nodiscard]] std::vector<float> floats(std::string_view key) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key) const;
  [[nodiscard]] std::vector<bool> flags(std::string_view key) const;

  [[noreturn]] void fail(std::string_view key, std::string_view why) const;

 private:
  const gguf_value& at(std::string_view key, std::string_view wanted) const;
  const gguf_array& array(std::string_view key, std::string_view wanted) const;

  std::string where_;
  std::map<std::string, gguf_value, std::less<>> values_;
};

}  // namespace octavo::model
