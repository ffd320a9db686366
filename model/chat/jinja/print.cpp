// See print.hpp.
#include "model/chat/jinja/print.hpp"

#include <utf8proc.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "model/chat/jinja/characters.hpp"

namespace octavo::model::jinja {
namespace {

void append_hex(std::string& text, char32_t code, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[(code >> shift) & 0xFU];
  }
}

/// str.isprintable, for one character.
bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      return false;
    default:
      return true;
  }
}

void append_escaped(std::string& text, char32_t c) {
  switch (c) {
    case '\n':
      text += "\\n";
      break;
    case '\r':
      text += "\\r";
      break;
    case '\t':
      text += "\\t";
      break;
    default:
      text += c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
      append_hex(text, c, c < 0x100 ? 2 : c < 0x10000 ? 4 : 8);
  }
}

/// repr of a text.
void append_quoted(std::string& out, std::string_view text) {
  const bool doubled =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = read_code_point(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (is_printable(c)) {
      append_code_point(out, c);
    } else {
      append_escaped(out, c);
    }
  }
  out += quote;
}

std::string plain_text(const value& v) {
  if (v.is_none()) return "None";
  if (const auto* flag = v.as<bool>()) return *flag ? "True" : "False";
  if (const auto* whole = v.as<std::int64_t>()) return std::to_string(*whole);
  if (const auto* number = v.as<double>()) return float_text(*number);
  throw operation_error("a value of type " + std::string(type_name(v)) + " cannot be printed");
}

/// repr(v) appended to `out`. The depth of values is bounded.
void append_repr(std::string& out, const value& v) {
  if (v.is_text()) {
    append_quoted(out, v.text());
  } else if (v.is_undefined()) {
    out += "Undefined";
  } else if (const auto* list = v.list()) {
    out += list->is_tuple ? '(' : '[';
    for (std::size_t i = 0; i < list->elements.size(); ++i) {
      if (i > 0) out += ", ";
      append_repr(out, list->elements[i]);
    }
    if (list->is_tuple && list->elements.size() == 1) out += ',';
    out += list->is_tuple ? ')' : ']';
  } else if (const auto* dict = v.dict()) {
    out += '{';
    for (std::size_t i = 0; i < dict->entries.size(); ++i) {
      if (i > 0) out += ", ";
      append_repr(out, dict->entries[i].first);
      out += ": ";
      append_repr(out, dict->entries[i].second);
    }
    out += '}';
  } else {
    out += plain_text(v);
  }
}

class json_writer {
 public:
  json_writer(const json_style& style, budget& work) : style_(style), work_(work) {}

  void write(const value& v, int level) {
    work_.check_text(out_.size());
    if (v.is_text()) {
      string(v.text());
    } else if (const auto* list = v.list()) {
      sequence('[', ']', level, list->elements.size(),
               [&](std::size_t i) { write(list->elements[i], level + 1); });
    } else if (const auto* dict = v.dict()) {
      object(*dict, level);
    } else {
      out_ += scalar(v);
    }
  }

  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  void object(const dict_object& dict, int level) {
    std::vector<const std::pair<value, value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::ranges::stable_sort(
          entries, [](const auto* a, const auto* b) { return compare(a->first, b->first) < 0; });
    }
    sequence('{', '}', level, entries.size(), [&](std::size_t i) {
      const value& key = entries[i]->first;
      string(key.is_text() ? std::string(key.text()) : scalar(key));
      out_ += style_.key_separator;
      write(entries[i]->second, level + 1);
    });
  }

  template <class Element>
  void sequence(char open, char close, int level, std::size_t count, Element&& element) {
    out_ += open;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(level + 1);
      element(i);
    }
    if (count > 0) new_line(level);
    out_ += close;
  }

  void new_line(int level) {
    if (!style_.indent) return;
    const std::size_t bytes = static_cast<std::size_t>(level) * style_.indent->size();
    work_.spend_text(bytes);
    work_.check_text(out_.size() + bytes);
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }

  static std::string scalar(const value& v) {
    if (v.is_none()) return "null";
    if (const auto* flag = v.as<bool>()) return *flag ? "true" : "false";
    if (const auto* whole = v.as<std::int64_t>()) return std::to_string(*whole);
    if (const auto* number = v.as<double>()) {
      if (std::isnan(*number)) return "NaN";
      if (std::isinf(*number)) return *number > 0 ? "Infinity" : "-Infinity";
      return float_text(*number);
    }
    throw operation_error("a value of type " + std::string(type_name(v)) + " has no form in JSON");
  }

  void string(std::string_view text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) character(read_code_point(text, at));
    out_ += '"';
  }

  void character(char32_t c) {
    static constexpr std::array<std::pair<char32_t, std::string_view>, 7> short_escapes{{
        {'"', "\\\""},
        {'\\', "\\\\"},
        {'\n', "\\n"},
        {'\r', "\\r"},
        {'\t', "\\t"},
        {'\f', "\\f"},
        {'\b', "\\b"},
    }};
    for (const auto& [escaped, form] : short_escapes) {
      if (c == escaped) {
        out_ += form;
        return;
      }
    }
    if (c < 0x20 || (style_.ascii && c > 0x7E)) {
      if (c > 0xFFFF) {
        unit(0xD800 + ((c - 0x10000) >> 10));
        c = 0xDC00 + ((c - 0x10000) & 0x3FF);
      }
      unit(c);
    } else {
      append_code_point(out_, c);
    }
  }

  void unit(char32_t code) {
    out_ += "\\u";
    append_hex(out_, code, 4);
  }

  const json_style& style_;
  budget& work_;
  std::string out_;
};

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer{};
  const auto end =
      std::to_chars(buffer.begin(), buffer.end(), number, std::chars_format::scientific).ptr;
  std::string scientific(buffer.begin(), end);
  const std::size_t mark = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + mark + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  const std::string sign = number < 0 || std::signbit(number) ? "-" : "";
  std::string digits = scientific.substr(sign.size(), mark - sign.size());
  std::erase(digits, '.');
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

marked_text to_text(const value& v, budget& work) {
  marked_text out;
  work.spend(extent_of(v).weight);
  if (const auto* text = v.as<text_value>()) return **text;
  if (v.list() != nullptr || v.dict() != nullptr) {
    std::string printed;
    append_repr(printed, v);
    work.spend_text(printed.size());
    out.append(printed, false);
  } else if (!v.is_undefined()) {
    out.append(plain_text(v), true);
  }
  return out;
}

marked_text to_json(const value& v, const json_style& style, budget& work) {
  work.spend(extent_of(v).weight);
  json_writer writer(style, work);
  writer.write(v, 0);
  work.spend_text(writer.text().size());
  marked_text out;
  out.append(writer.text(), false);
  return out;
}

}  // namespace octavo::model::jinja
