// octavo.trace/1, our own form. JSON lines:
//
//   {"format":"octavo.trace/1","prefix_block":16}
//   {"id":"a","arrival_s":0.5,"prompt_tokens":40,"output_tokens":8,"prefix":[1,2,3]}
//   {"id":"b","after":"a","delay_s":2,"prompt_tokens":60,"output_tokens":5,"session":"s"}
//
// or one JSON document: the header's fields beside a "requests" array. A field
// that the form does not know is an error: a misspelled one must not be lost.
#include <cstring>
#include <optional>

#include "traces/formats/formats.hpp"
#include "traces/formats/json.hpp"

namespace octavo::traces {
namespace {

constexpr std::string_view format_name = "octavo.trace/1";
constexpr std::string_view request_fields =
    "id, arrival_s, prompt_tokens, output_tokens, max_tokens, prefix, session, after, delay_s, "
    "priority, tenant, cancel_s";

/// One request's fields; those whose absence matters are optional.
struct octavo_row {
  request r;
  std::string id;
  std::string after;
  std::optional<micros> arrival;
  std::optional<micros> delay;
};

void read_request_field(const place& at, std::string_view key, json_value& value,
                        trace_builder& builder, octavo_row& row) {
  if (key == "id") {
    row.id = json_name(at, key, value);
  } else if (key == "arrival_s") {
    row.arrival = parse_time(at, key, json_token(value), 1e6);
  } else if (key == "prompt_tokens") {
    row.r.prompt_tokens = parse_tokens(at, key, json_token(value));
  } else if (key == "output_tokens") {
    row.r.output_tokens = parse_tokens(at, key, json_token(value));
  } else if (key == "max_tokens") {
    row.r.max_tokens = parse_tokens(at, key, json_token(value));
  } else if (key == "prefix") {
    json_prefix(at, key, value, builder, row.r);
  } else if (key == "session") {
    row.r.session = builder.intern(json_name(at, key, value));
  } else if (key == "after") {
    row.after = json_name(at, key, value);
  } else if (key == "delay_s") {
    row.delay = parse_time(at, key, json_token(value), 1e6);
  } else if (key == "priority") {
    row.r.priority =
        static_cast<std::int32_t>(parse_integer(at, key, json_token(value), INT32_MIN, INT32_MAX));
  } else if (key == "tenant") {
    row.r.tenant = builder.intern(json_name(at, key, value));
  } else if (key == "cancel_s") {
    row.r.cancel = parse_time(at, key, json_token(value), 1e6);
  } else {
    fail(at, "has an unknown field \"" + quoted(key) + "\"; expected one of " +
                 std::string(request_fields));
  }
}

void add_row(const place& at, trace_builder& builder, octavo_row row) {
  if (row.id.empty()) fail(at, "id", "", "a name or a number");
  if (row.r.prompt_tokens == token_count{0}) fail(at, "prompt_tokens", "", "tokens");
  if (row.r.output_tokens == token_count{0}) fail(at, "output_tokens", "", "tokens");
  if (!row.arrival && row.after.empty()) fail(at, "arrival_s", "", "seconds, or \"after\"");
  if (row.delay && row.after.empty()) fail(at, "has delay_s but no \"after\" to count it from");
  row.r.arrival = row.arrival.value_or(micros{0});
  builder.add(row.r, at, std::move(row.id));
  if (!row.after.empty()) {
    builder.last_arrives_after(std::move(row.after), row.delay.value_or(micros{0}));
  }
}

/// A field of the header; false if it is none.
bool read_header_field(const place& at, std::string_view key, json_value& value,
                       trace_builder& builder) {
  if (key == "format") {
    const auto name = json_text(at, key, value);
    if (name != format_name) fail(at, key, name, format_name);
  } else if (key == "prefix_block") {
    builder.set_prefix_block(parse_tokens(at, key, json_token(value)));
  } else if (key == "notes") {
    if (!json_token(value).starts_with('[')) fail(at, key, json_token(value), "a list of strings");
    for (auto element : value.get_array()) {
      json_value sentence = element.value();
      builder.note(std::string(json_text(at, key, sentence)));
    }
  } else {
    return false;
  }
  return true;
}

[[noreturn]] void fail_unknown_header(const place& at, std::string_view key) {
  fail(at, "has an unknown field \"" + quoted(key) +
               "\" in the header; expected format, prefix_block, notes");
}

/// Lines of a document up to a token, counted on from the last call.
class line_counter {
 public:
  line_counter(std::string_view text, place start) : at_(start), from_(text.data()) {}
  place at(std::string_view token) {
    while (const void* end = std::memchr(from_, '\n', token.data() - from_)) {
      from_ = static_cast<const char*>(end) + 1;
      ++at_.line;
    }
    return at_;
  }

 private:
  place at_;
  const char* from_;
};

void read_requests(json_value& value, line_counter& lines, place& at, trace_builder& builder) {
  if (!json_token(value).starts_with('[')) {
    fail(at, "requests", json_token(value), "a list of requests");
  }
  for (auto element : value.get_array()) {
    json_value item = element.value();
    const auto token = json_token(item);
    at = lines.at(token);
    if (!token.starts_with('{')) fail(at, "requests", token, "an object for each request");
    octavo_row row;
    for_each_field(at, item.get_object(), [&](std::string_view key, json_value& field) {
      read_request_field(at, key, field, builder, row);
    });
    add_row(at, builder, std::move(row));
  }
}

}  // namespace

trace read_octavo_lines(text_source& source) {
  trace_builder builder(source.at().file, format_name);
  simdjson::ondemand::parser parser;
  const auto header = source.next_line();
  for_each_field_of_line(parser, source.at(), *header,
                         [&](std::string_view key, json_value& value) {
                           if (!read_header_field(source.at(), key, value, builder)) {
                             fail_unknown_header(source.at(), key);
                           }
                         });
  while (const auto line = source.next_line()) {
    const place at = source.at();
    octavo_row row;
    for_each_field_of_line(parser, at, *line, [&](std::string_view key, json_value& value) {
      read_request_field(at, key, value, builder, row);
    });
    add_row(at, builder, std::move(row));
  }
  return std::move(builder).finish();
}

trace read_octavo_document(text_source& source) {
  trace_builder builder(source.at().file, format_name);
  simdjson::ondemand::parser parser;
  const std::string_view text = source.rest();
  place at{source.at().file, source.at().line + 1};
  line_counter lines(text, at);
  with_json_errors(at, [&] {
    const simdjson::padded_string_view padded(text, text.size() + simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document = parser.iterate(padded);
    bool requests = false;
    for_each_field(at, document.get_object(), [&](std::string_view key, json_value& value) {
      at = lines.at(json_token(value));
      if (key == "requests") {
        read_requests(value, lines, at, builder);
        requests = true;
      } else if (!read_header_field(at, key, value, builder)) {
        fail_unknown_header(at, key);
      }
    });
    if (!requests) fail({at.file, 0}, "requests", "", "a list of requests");
    if (!at_end(document)) fail(at, "has more behind its JSON document");
  });
  return std::move(builder).finish();
}

}  // namespace octavo::traces
