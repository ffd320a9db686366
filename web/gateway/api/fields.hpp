// Reads the fields of a request's objects, with errors that name the field, what was given
// and what is allowed. Internal to this folder.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "web/gateway/api/api_error.hpp"

namespace octavo::api {

/// A documented field that is not supported, and the values that ask for nothing: a JSON
/// list. Null is always among them.
struct neutral_field {
  std::string_view name;
  std::string_view values = "[]";
};

/// What a number must be.
struct number_range {
  double least = 0;
  double most = 0;
  bool excludes_least = false;
};

/// One object. A null field counts as absent, as with OpenAI. Fields that nobody asked for
/// are refused by finish().
class fields {
 public:
  /// `path` names the object, such as "messages[0]"; empty for the body.
  fields(const nlohmann::json& object, std::string path);

  /// The field, unless it is absent or null.
  [[nodiscard]] const nlohmann::json* find(std::string_view name);
  /// The same, but absence is refused.
  [[nodiscard]] const nlohmann::json& need(std::string_view name, std::string_view allowed);

  [[nodiscard]] bool flag(std::string_view name, bool otherwise);
  /// Whole numbers, written with a fraction of zero or not, within the bounds.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t least,
                                                    std::int64_t most);
  [[nodiscard]] std::optional<double> number(std::string_view name, const number_range& range);
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  /// A list of tokens in the vocabulary, at most `count_max`.
  [[nodiscard]] std::vector<token_id> tokens(std::string_view name, token_id vocab_size,
                                             std::size_t count_max);

  /// Known fields that change nothing, whatever text they hold.
  void ignore(std::span<const std::string_view> names);
  /// Refuses fields that are not supported and ask for something.
  void refuse_unsupported(std::span<const neutral_field> list);
  /// Refuses every field that was not looked at.
  void finish() const;

  /// The field's full name.
  [[nodiscard]] std::string path(std::string_view name) const;
  [[noreturn]] void fail(std::string_view name, const std::string& why) const;
  /// "is <value>; <allowed>".
  [[noreturn]] void fail_value(std::string_view name, const nlohmann::json& value,
                               std::string_view allowed) const;

 private:
  const nlohmann::json& object_;
  std::string path_;
  std::vector<std::string_view> seen_;
};

/// A whole number, if the value is one that fits.
[[nodiscard]] std::optional<std::int64_t> whole_number(const nlohmann::json& value);

/// The tokens of a list, each in the vocabulary; refuses others, naming path[index].
[[nodiscard]] std::vector<token_id> read_tokens(const nlohmann::json& list, token_id vocab_size,
                                                const std::string& path);

}  // namespace octavo::api
