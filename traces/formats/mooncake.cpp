// Mooncake's traces (FAST'25) and those of tools that took the form over:
// timestamp in milliseconds, input_length, output_length, chained hash_ids, and
// optionally session_id with delay: then a row arrives that many milliseconds
// after the session's row before it has finished.
#include <array>
#include <optional>
#include <unordered_map>

#include "traces/formats/formats.hpp"
#include "traces/formats/json.hpp"

namespace octavo::traces {
namespace {

constexpr std::int32_t block_tokens_default = 512;
constexpr std::array<std::int32_t, 6> block_tokens_others{16, 32, 64, 128, 256, 1024};

struct mooncake_row {
  request r;
  std::string session;
  std::optional<micros> timestamp;
  std::optional<micros> delay;
};

mooncake_row parse_row(simdjson::ondemand::parser& parser, const place& at, std::string_view line,
                       trace_builder& builder) {
  mooncake_row row;
  for_each_field_of_line(parser, at, line, [&](std::string_view key, json_value& value) {
    if (key == "timestamp") row.timestamp = parse_time(at, key, json_token(value), 1e3);
    if (key == "input_length") row.r.prompt_tokens = parse_tokens(at, key, json_token(value));
    if (key == "output_length") row.r.output_tokens = parse_tokens(at, key, json_token(value));
    if (key == "hash_ids") json_prefix(at, key, value, builder, row.r);
    if (key == "session_id") row.session = json_name(at, key, value);
    if (key == "delay" || key == "delay_ms") {
      if (row.delay) fail(at, "gives both \"delay\" and \"delay_ms\"; expected one");
      row.delay = parse_time(at, key, json_token(value), 1e3);
    }
  });
  if (row.r.prompt_tokens == token_count{0}) fail(at, "input_length", "", "tokens");
  if (row.r.output_tokens == token_count{0}) fail(at, "output_length", "", "tokens");
  return row;
}

/// Places a row in time: by its delay in its session, else by its timestamp.
void place_in_time(mooncake_row& row, const place& at, std::optional<std::uint32_t> previous) {
  if (previous && (row.delay || !row.timestamp)) {
    row.r.after = *previous;
    row.r.delay = row.delay.value_or(micros{0});
    return;
  }
  if (row.delay.value_or(micros{0}) != micros{0}) {
    fail(at, "has a delay but no earlier row of its session to wait for");
  }
  if (!row.timestamp && row.session.empty()) fail(at, "timestamp", "", "milliseconds");
  row.r.arrival = row.timestamp.value_or(micros{0});
}

/// The first request whose ids do not match `block_tokens`; none where all match.
std::optional<std::uint32_t> first_misfit(const trace& t, std::int32_t block_tokens) {
  for (std::uint32_t i = 0; i < t.requests.size(); ++i) {
    const request& r = t.requests[i];
    const auto blocks = blocks_for(r.prompt_tokens, token_count{block_tokens}).raw();
    if (r.prefix_count != 0 && static_cast<std::int64_t>(r.prefix_count) != blocks) return i;
  }
  return std::nullopt;
}

/// Finds how many tokens an id stands for, as the form does not say it.
void infer_prefix_block(trace_builder& builder) {
  const trace& t = builder.so_far();
  if (t.prefix_ids.empty()) return;
  const auto misfit = first_misfit(t, block_tokens_default);
  if (!misfit) return builder.set_prefix_block(token_count{block_tokens_default});
  std::vector<std::int32_t> fitting;
  for (const auto tokens : block_tokens_others) {
    if (!first_misfit(t, tokens)) fitting.push_back(tokens);
  }
  if (fitting.empty()) {
    const request& r = t.requests[*misfit];
    fail(builder.where(*misfit),
         "has " + std::to_string(r.prefix_count) + " hash_ids for " +
             std::to_string(r.prompt_tokens.raw()) + " tokens: at 512 tokens a block it needs " +
             std::to_string(blocks_for(r.prompt_tokens, token_count{512}).raw()) +
             ", and 16, 32, 64, 128, 256 and 1024 do not fit all rows either");
  }
  builder.set_prefix_block(token_count{fitting.front()});
  builder.note("Prefix ids do not fit 512 tokens a block; they fit " +
               std::to_string(fitting.front()) + ", which is used.");
  if (fitting.size() > 1) {
    builder.note("They fit " + std::to_string(fitting[1]) + " tokens a block as well.");
  }
}

}  // namespace

trace read_mooncake(text_source& source) {
  trace_builder builder(source.at().file, "mooncake-jsonl");
  simdjson::ondemand::parser parser;
  std::unordered_map<std::uint32_t, std::uint32_t> last_of_session;
  while (const auto line = source.next_line()) {
    const place at = source.at();
    mooncake_row row = parse_row(parser, at, *line, builder);
    std::optional<std::uint32_t> previous;
    if (!row.session.empty()) {
      row.r.session = builder.intern(row.session);
      const auto [entry, first] = last_of_session.try_emplace(row.r.session, builder.size());
      if (!first) previous = std::exchange(entry->second, builder.size());
    }
    place_in_time(row, at, previous);
    builder.add(row.r, at);
  }
  infer_prefix_block(builder);
  return std::move(builder).finish();
}

}  // namespace octavo::traces
