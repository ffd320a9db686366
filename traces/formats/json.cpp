// JSON helpers of the format readers; see json.hpp.
#include "traces/formats/json.hpp"

#include <charconv>

namespace octavo::traces {
namespace {

constexpr std::string_view block_id_expected =
    "a block id: an integer from 0 to 18446744073709551615, or a string";

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

bool is_string(json_value& value) {
  return json_token(value).starts_with('"');
}

std::uint64_t block_id_from(const place& at, std::string_view key, json_value& value) {
  if (is_string(value)) return fnv1a(value.get_string());
  const auto text = json_token(value);
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(at, key, text, block_id_expected);
  }
  return id;
}

}  // namespace

std::string_view json_token(json_value& value) {
  return trimmed(value.raw_json_token());
}

std::string_view json_text(const place& at, std::string_view key, json_value& value) {
  if (!is_string(value)) fail(at, key, json_token(value), "a string");
  return value.get_string();
}

std::string json_name(const place& at, std::string_view key, json_value& value) {
  std::string name(is_string(value) ? std::string_view(value.get_string()) : json_token(value));
  const bool digits =
      name.find_first_not_of("0123456789", name.starts_with('-') ? 1 : 0) == std::string::npos;
  if (name.empty() || (!is_string(value) && !digits)) {
    fail(at, key, name, "a string that is not empty, or an integer");
  }
  return name;
}

void json_prefix(const place& at, std::string_view key, json_value& value, trace_builder& builder,
                 request& r) {
  if (!json_token(value).starts_with('[')) fail(at, key, json_token(value), "a list of block ids");
  builder.begin_prefix(r, at);
  for (auto element : value.get_array()) {
    json_value id = element.value();
    builder.add_prefix_id(r, block_id_from(at, key, id));
  }
  if (r.prefix_count == 0) fail(at, key, "an empty list", "one block id or more, or no field");
}

void key_set::add(const place& at, std::string_view key) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (keys_[i] == key) fail(at, "gives the field \"" + quoted(key) + "\" twice");
  }
  if (count_ == keys_.size()) fail(at, "has more than 64 fields in one object");
  keys_[count_++] = key;
}

}  // namespace octavo::traces
