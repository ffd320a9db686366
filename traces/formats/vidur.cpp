// The CSV of Vidur and of Splitwise's simulator: one request a row, columns by
// name. Vidur's processed traces hold lengths only; then all arrive at once.
#include "traces/formats/formats.hpp"
#include "traces/formats/trace_builder.hpp"

namespace octavo::traces {
namespace {

auto prompt_column(const csv_table& table) {
  return table.find({"num_prefill_tokens", "prompt_size", "prompt_tokens"});
}

auto output_column(const csv_table& table) {
  return table.find({"num_decode_tokens", "token_size", "output_tokens"});
}

}  // namespace

bool is_vidur(const csv_table& table) {
  return prompt_column(table) && output_column(table);
}

trace read_vidur(text_source& source, csv_table& table) {
  const auto arrival = table.find({"arrived_at", "arrival_timestamp", "arrival_time", "arrival_s"});
  const auto prompt = *prompt_column(table);
  const auto output = *output_column(table);
  trace_builder builder(source.at().file, "vidur-csv");
  if (!arrival) builder.note("The table has no arrival times: all requests arrive at 0.");
  while (table.next()) {
    const place at = source.at();
    request r;
    if (arrival) r.arrival = parse_time(at, arrival->name, table.cell(*arrival), 1e6);
    r.prompt_tokens = parse_tokens(at, prompt.name, table.cell(prompt));
    r.output_tokens = parse_tokens(at, output.name, table.cell(output));
    builder.add(r, at);
  }
  return std::move(builder).finish();
}

}  // namespace octavo::traces
