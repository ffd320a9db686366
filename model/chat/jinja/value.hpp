// Values of templates: Python's, as far as templates can tell. Lists and dicts never
// change once made (transformers refuses templates that would change them), so that
// values are cheap to copy and cannot contain themselves. Only namespaces change;
// they and macros belong to the rendering, and values point to them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/chat/jinja/limits.hpp"
#include "model/tokenizer/marked_text.hpp"

namespace octavo::model::jinja {

class value;
struct loop_state;
struct macro_object;
struct builtin_method;
using value_list = std::vector<value>;

/// Text whose bytes know whether they come from the template (trusted) or from
/// elsewhere. Shared, never changed, always UTF-8.
using text_value = std::shared_ptr<const marked_text>;

/// What there is not; printing it gives nothing, most other uses are errors.
struct undefined_value {
  std::shared_ptr<const std::string> what;
};
struct none_value {};

/// How large a value is, with all that is inside.
struct value_extent {
  int depth = 0;            ///< levels of lists and dicts
  std::int64_t weight = 1;  ///< steps that going through all of it takes
};

struct list_object {
  value_list elements;
  bool is_tuple = false;
  value_extent extent;
};

struct dict_object {
  std::vector<std::pair<value, value>> entries;  ///< in the order of insertion
  std::map<std::string, std::size_t, std::less<>> by_text;
  value_extent extent;

  /// nullptr where there is no such key.
  [[nodiscard]] const value* find(std::string_view key) const;
  [[nodiscard]] const value* find(const value& key) const;
  /// Adds, or replaces the value of an equal key.
  void put(value key, value content);
};

/// What namespace() makes.
struct namespace_object {
  std::map<std::string, value, std::less<>> attributes;
};

/// A method with the value it belongs to.
struct bound_method {
  std::shared_ptr<const value> self;
  const builtin_method* method = nullptr;
};

enum class global_function { range, dict, namespace_, raise_exception, strftime_now };

using list_value = std::shared_ptr<const list_object>;
using dict_value = std::shared_ptr<const dict_object>;

class value {
 public:
  using variant =
      std::variant<undefined_value, none_value, bool, std::int64_t, double, text_value, list_value,
                   dict_value, namespace_object*, std::shared_ptr<const loop_state>,
                   const macro_object*, bound_method, global_function>;

  value() : content_(none_value{}) {}
  template <class T>
  requires std::constructible_from<variant, T> &&
      (!std::same_as<std::decay_t<T>, value>)value(T content)
      : content_(std::move(content)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const variant& content() const { return content_; }
  template <class T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(content_);
  }
  /// nullptr where the value is no T.
  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&content_);
  }

  [[nodiscard]] bool is_undefined() const { return is<undefined_value>(); }
  [[nodiscard]] bool is_none() const { return is<none_value>(); }
  [[nodiscard]] bool is_text() const { return is<text_value>(); }
  /// The characters of a text; empty for all else.
  [[nodiscard]] std::string_view text() const;
  /// The elements of a list or tuple, or nullptr.
  [[nodiscard]] const list_object* list() const;
  [[nodiscard]] const dict_object* dict() const;

 private:
  variant content_;
};

struct loop_state {
  list_value items;
  std::size_t index0 = 0;
};

[[nodiscard]] value make_undefined(std::string what);
[[nodiscard]] value make_text(marked_text text);
[[nodiscard]] value make_text(std::string_view text, bool trusted);
/// Both throw operation_error where values are nested deeper than is allowed.
[[nodiscard]] value make_list(value_list elements, const limits& allowed, bool is_tuple = false);
[[nodiscard]] value make_dict(dict_object dict, const limits& allowed);

[[nodiscard]] value_extent extent_of(const value& v);

/// "text", "list", ...: for messages.
[[nodiscard]] std::string_view type_name(const value& v);
/// What `if` decides by.
[[nodiscard]] bool is_true(const value& v);
/// The number of a bool, integer or floating value. Throws operation_error for others.
[[nodiscard]] double as_double(const value& v);
[[nodiscard]] bool is_number(const value& v);
/// A whole number (bools count). Throws operation_error naming `what` for others.
[[nodiscard]] std::int64_t as_integer(const value& v, std::string_view what);

/// Python's ==.
[[nodiscard]] bool equals(const value& a, const value& b);
/// Python's ordering: below 0, 0 or above 0. Throws operation_error for types that
/// have none.
[[nodiscard]] int compare(const value& a, const value& b);
/// Python's `in`.
[[nodiscard]] bool contains(const value& container, const value& element);

/// The elements that a loop runs over: of a list, keys of a dict, characters of a
/// text, nothing of an undefined value. Throws operation_error for others.
[[nodiscard]] value_list elements_of(const value& v, budget& work);
/// Their number.
[[nodiscard]] std::int64_t length_of(const value& v);

}  // namespace octavo::model::jinja
