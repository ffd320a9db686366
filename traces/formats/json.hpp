// JSON for the format readers: simdjson's on-demand parser with errors that name
// the place. Numbers go through field.hpp as text, so that their range is checked
// in one way everywhere.
#pragma once

#include <simdjson.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/formats/field.hpp"
#include "traces/formats/trace_builder.hpp"

namespace octavo::traces {

using json_value = simdjson::ondemand::value;
using json_object = simdjson::ondemand::object;

/// A number's text as the file has it; what else stands there as an error would show it.
[[nodiscard]] std::string_view json_token(json_value& value);

/// A string, or an integer as its digits: ids and names come as either. Not empty.
[[nodiscard]] std::string json_name(const place& at, std::string_view key, json_value& value);

/// A string.
[[nodiscard]] std::string_view json_text(const place& at, std::string_view key, json_value& value);

/// Appends a list of block ids to the builder: integers below 2^64, or strings,
/// which are hashed to 64 bits (FNV-1a).
void json_prefix(const place& at, std::string_view key, json_value& value, trace_builder& builder,
                 request& r);

/// True once everything in `document` has been read.
[[nodiscard]] inline bool at_end(simdjson::ondemand::document& document) {
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

/// Keys of one object, to refuse one that comes twice.
class key_set {
 public:
  void add(const place& at, std::string_view key);

 private:
  std::array<std::string_view, 64> keys_;
  std::size_t count_ = 0;
};

/// Calls `visit(key, value)` for each field; throws input_error on a key that comes twice.
template <class Visit>
void for_each_field(const place& at, json_object object, Visit visit) {
  key_set keys;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    keys.add(at, key);
    json_value value = field.value();
    visit(key, value);
  }
}

/// Runs `body` and turns a JSON error into an input_error at `at`.
template <class Body>
void with_json_errors(const place& at, Body body) {
  try {
    body();
  } catch (const simdjson::simdjson_error& error) {
    fail(at, std::string("is not valid JSON here: ") + error.what());
  }
}

/// Parses one line that must be one object, and visits its fields. `line` needs
/// SIMDJSON_PADDING readable bytes behind it.
template <class Visit>
void for_each_field_of_line(simdjson::ondemand::parser& parser, const place& at,
                            std::string_view line, Visit visit) {
  with_json_errors(at, [&] {
    const simdjson::padded_string_view padded(line, line.size() + simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document = parser.iterate(padded);
    for_each_field(at, document.get_object(), visit);
    if (!at_end(document)) fail(at, "has more behind its JSON object; expected one a line");
  });
}

}  // namespace octavo::traces
