// A value of a JSON file together with its place in it, so that every complaint
// names the field. Private to model/tokenizer.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::model {

/// A JSON document that stays parsed while its fields are read.
class json_document {
 public:
  /// Throws input_error, which begins with `name`, for malformed JSON.
  json_document(std::string_view text, std::string name);

  [[nodiscard]] simdjson::dom::element root() const { return root_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
  std::string name_;
};

/// One value. Reading it as what it is not throws input_error.
class json_field {
 public:
  explicit json_field(const json_document& document)
      : value_(document.root()), file_(document.name()) {}

  [[noreturn]] void fail(const std::string& why) const;

  /// The member `key`, which must exist and not be null.
  [[nodiscard]] json_field at(std::string_view key) const;
  /// The member `key`; nothing where it is absent or null.
  [[nodiscard]] std::optional<json_field> find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key).has_value(); }

  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) const;
  [[nodiscard]] simdjson::dom::object object() const;
  [[nodiscard]] simdjson::dom::array array() const;

  /// A member's text or flag, or `otherwise` where it is absent.
  [[nodiscard]] std::string_view text_or(std::string_view key, std::string_view otherwise) const;
  [[nodiscard]] bool flag_or(std::string_view key, bool otherwise) const;

  /// An element of this array or object.
  [[nodiscard]] json_field element(std::size_t index, simdjson::dom::element value) const;
  [[nodiscard]] json_field member(std::string_view key, simdjson::dom::element value) const;

  [[nodiscard]] bool is_text() const { return value_.is_string(); }
  [[nodiscard]] bool is_array() const { return value_.is_array(); }
  [[nodiscard]] bool is_object() const { return value_.is_object(); }
  /// Where the value is, for messages: file, then field.
  [[nodiscard]] std::string where() const;

 private:
  json_field(simdjson::dom::element value, std::string file, std::string path)
      : value_(value), file_(std::move(file)), path_(std::move(path)) {}

  simdjson::dom::element value_;
  std::string file_;
  std::string path_;
};

/// `text` in quotes, shortened where it is long.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace octavo::model
