// Recognises a trace's form from its beginning; see reader.hpp.
#include "traces/reader.hpp"

#include <algorithm>
#include <vector>

#include "traces/formats/formats.hpp"
#include "traces/formats/json.hpp"

namespace octavo::traces {
namespace {

constexpr std::string_view forms =
    "octavo.trace/1 (a header line {\"format\":\"octavo.trace/1\"} first), Azure CSV "
    "(TIMESTAMP,ContextTokens,GeneratedTokens), Vidur or Splitwise CSV "
    "(arrived_at,num_prefill_tokens,num_decode_tokens), BurstGPT CSV, Mooncake or Bailian JSON "
    "lines (input_length, output_length), ShareGPT JSON";

/// What the first line, read as a JSON object, shows.
struct first_object {
  std::vector<std::string> keys;
  bool complete = false;

  [[nodiscard]] bool has(std::string_view key) const {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  }
};

/// Keys of the object that `line` holds or, in a document of several lines, begins.
first_object look_at(std::string_view line) {
  first_object result;
  simdjson::ondemand::parser parser;
  try {
    const simdjson::padded_string_view padded(line, line.size() + simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document = parser.iterate(padded);
    for (auto field : document.get_object()) {
      result.keys.emplace_back(std::string_view(field.unescaped_key()));
    }
    result.complete = at_end(document);
  } catch (const simdjson::simdjson_error&) {
    // Not complete: the readers say what is wrong, and where.
  }
  return result;
}

trace read_json_object(text_source& source, std::string_view line) {
  const first_object first = look_at(line);
  if (first.has("requests")) return read_octavo_document(source);
  if (first.has("format")) {
    return first.complete ? read_octavo_lines(source) : read_octavo_document(source);
  }
  if (first.has("chat_id")) return read_bailian(source);
  if (first.has("input_length") || first.has("hash_ids")) return read_mooncake(source);
  if (!first.complete) return read_octavo_document(source);
  fail({source.at().file, source.at().line + 1}, "first line", line, forms);
}

trace read_csv(text_source& source, std::string_view line) {
  const std::string found(line);
  csv_table table(source);
  if (is_azure(table)) return read_azure(source, table);
  if (is_burstgpt(table)) return read_burstgpt(source, table);
  if (is_vidur(table)) return read_vidur(source, table);
  fail(source.at(), "first line", found, forms);
}

}  // namespace

trace read_trace(const std::filesystem::path& file) {
  text_source source(file);
  const auto line = source.peek_line();
  if (!line) fail({source.at().file, 0}, "is empty; expected " + std::string(forms));
  const char first = trimmed(*line).front();
  if (first == '{') return read_json_object(source, *line);
  if (first == '[') return read_sharegpt(source);
  return read_csv(source, *line);
}

}  // namespace octavo::traces
