// BurstGPT: Timestamp in whole seconds, Model, Request tokens, Response tokens,
// Total tokens, Log Type. A response of 0 tokens is a request that failed.
#include "traces/formats/formats.hpp"
#include "traces/formats/trace_builder.hpp"

namespace octavo::traces {

bool is_burstgpt(const csv_table& table) {
  return table.find({"timestamp"}) && table.find({"request tokens"}) &&
         table.find({"response tokens"});
}

trace read_burstgpt(text_source& source, csv_table& table) {
  const auto timestamp = *table.find({"timestamp"});
  const auto prompt = *table.find({"request tokens"});
  const auto output = *table.find({"response tokens"});
  trace_builder builder(source.at().file, "burstgpt-csv");
  std::size_t failed = 0;
  std::size_t ties = 0;
  while (table.next()) {
    const place at = source.at();
    request r;
    r.arrival = parse_time(at, "Timestamp", table.cell(timestamp), 1e6);
    r.output_tokens = parse_tokens(at, "Response tokens", table.cell(output), 0);
    if (r.output_tokens == token_count{0}) {
      ++failed;
      continue;
    }
    r.prompt_tokens = parse_tokens(at, "Request tokens", table.cell(prompt));
    if (builder.size() > 0 && builder.so_far().requests.back().arrival == r.arrival) ++ties;
    builder.add(r, at);
  }
  if (failed > 0) {
    builder.note(std::to_string(failed) + " failed requests (Response tokens 0) are left out.");
  }
  if (ties > 0) {
    builder.note(
        std::to_string(ties) +
        " requests share their whole second with the one before; all arrive at its start.");
  }
  return std::move(builder).finish();
}

}  // namespace octavo::traces
