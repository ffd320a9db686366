// See from_json.hpp.
#include "model/chat/jinja/from_json.hpp"

#include "model/tokenizer/utf8.hpp"

namespace octavo::model::jinja {
namespace {

using nlohmann::ordered_json;

class converter {
 public:
  converter(const std::string& what, bool trusted, const limits& allowed)
      : what_(what), trusted_(trusted), allowed_(allowed) {}

  value convert(const ordered_json& document, int depth) {
    if (depth > allowed_.value_depth) {
      fail("is nested deeper than " + std::to_string(allowed_.value_depth) + " levels");
    }
    if (document.is_string()) return text(document.get_ref<const std::string&>());
    if (document.is_array()) {
      value_list elements;
      for (const auto& element : document) elements.push_back(convert(element, depth + 1));
      return make_list(std::move(elements), allowed_);
    }
    if (document.is_object()) {
      dict_object dict;
      for (const auto& [key, content] : document.items()) {
        dict.put(text(key), convert(content, depth + 1));
      }
      return make_dict(std::move(dict), allowed_);
    }
    return scalar(document);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw input_error(what_ + ": " + why); }

  value text(const std::string& content) const {
    if (first_invalid_utf8(content)) fail("holds text that is not valid UTF-8");
    return make_text(content, trusted_);
  }

  [[nodiscard]] value scalar(const ordered_json& document) const {
    if (document.is_null()) return {};
    if (document.is_boolean()) return document.get<bool>();
    if (document.is_number_float()) return document.get<double>();
    if (!document.is_number()) fail("holds a value of a kind that JSON has not");
    if (document.is_number_unsigned() &&
        document.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
      fail("holds the number " + document.dump() + "; whole numbers up to " +
           std::to_string(INT64_MAX) + " are allowed");
    }
    return document.get<std::int64_t>();
  }

  const std::string& what_;
  bool trusted_;
  const limits& allowed_;
};

}  // namespace

value from_json(const ordered_json& document, const std::string& what, bool trusted,
                const limits& allowed) {
  return converter(what, trusted, allowed).convert(document, 1);
}

}  // namespace octavo::model::jinja
