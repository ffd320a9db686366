// Alibaba's Bailian usage traces: chat_id, parent_chat_id (negative for a first
// turn), timestamp in seconds, input_length, output_length, type, turn, hash_ids
// of 16 tokens a block. Turns keep their recorded arrivals.
#include <optional>
#include <unordered_map>

#include "traces/formats/formats.hpp"
#include "traces/formats/json.hpp"

namespace octavo::traces {
namespace {

struct bailian_row {
  request r;
  std::string chat;
  std::string parent;
  bool timed = false;
};

bailian_row parse_row(simdjson::ondemand::parser& parser, const place& at, std::string_view line,
                      trace_builder& builder) {
  bailian_row row;
  for_each_field_of_line(parser, at, line, [&](std::string_view key, json_value& value) {
    if (key == "chat_id") row.chat = json_name(at, key, value);
    if (key == "parent_chat_id") row.parent = json_name(at, key, value);
    if (key == "input_length") row.r.prompt_tokens = parse_tokens(at, key, json_token(value));
    if (key == "output_length") row.r.output_tokens = parse_tokens(at, key, json_token(value));
    if (key == "hash_ids") json_prefix(at, key, value, builder, row.r);
    if (key == "timestamp") {
      row.r.arrival = parse_time(at, key, json_token(value), 1e6);
      row.timed = true;
    }
  });
  if (row.chat.empty()) fail(at, "chat_id", "", "a chat's id");
  if (!row.timed) fail(at, "timestamp", "", "seconds");
  if (row.r.prompt_tokens == token_count{0}) fail(at, "input_length", "", "tokens");
  if (row.r.output_tokens == token_count{0}) fail(at, "output_length", "", "tokens");
  return row;
}

}  // namespace

trace read_bailian(text_source& source) {
  trace_builder builder(source.at().file, "bailian-jsonl");
  builder.set_prefix_block(token_count{16});
  simdjson::ondemand::parser parser;
  std::unordered_map<std::string, std::uint32_t> session_of_chat;
  std::size_t follow_ups = 0;
  std::size_t orphans = 0;
  while (const auto line = source.next_line()) {
    const place at = source.at();
    bailian_row row = parse_row(parser, at, *line, builder);
    const bool first_turn = row.parent.empty() || row.parent.starts_with('-');
    const auto parent = session_of_chat.find(row.parent);
    if (!first_turn && parent != session_of_chat.end()) {
      row.r.session = parent->second;
      ++follow_ups;
    } else {
      row.r.session = builder.intern(row.chat);
      orphans += first_turn ? 0U : 1U;
    }
    session_of_chat.emplace(row.chat, row.r.session);
    builder.add(row.r, at, std::move(row.chat));
  }
  if (follow_ups > 0) {
    builder.note(std::to_string(follow_ups) +
                 " follow-up turns arrive at their recorded times, whether or not the turn "
                 "before has finished.");
  }
  if (orphans > 0) {
    builder.note(std::to_string(orphans) +
                 " turns name a parent that the trace does not hold before them; each starts a "
                 "session.");
  }
  return std::move(builder).finish();
}

}  // namespace octavo::traces
