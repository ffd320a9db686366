// The readers by format. reader.cpp looks at the beginning of a file and calls one.
#pragma once

#include "traces/formats/csv.hpp"
#include "traces/formats/text_source.hpp"
#include "traces/trace.hpp"

namespace octavo::traces {

/// Our own form as JSON lines: a header, then one request a line.
[[nodiscard]] trace read_octavo_lines(text_source& source);
/// Our own form as one JSON document with a `requests` array.
[[nodiscard]] trace read_octavo_document(text_source& source);

/// Mooncake (FAST'25) and its kin: times in milliseconds, chained `hash_ids`.
[[nodiscard]] trace read_mooncake(text_source& source);
/// Alibaba Bailian: times in seconds, chats with parents, 16 tokens a block.
[[nodiscard]] trace read_bailian(text_source& source);
/// ShareGPT: conversations as text, of which lengths are estimated.
[[nodiscard]] trace read_sharegpt(text_source& source);

/// Azure LLM inference traces (Splitwise, ISCA'24, and later).
[[nodiscard]] bool is_azure(const csv_table& table);
[[nodiscard]] trace read_azure(text_source& source, csv_table& table);
/// Vidur and Splitwise's simulators: arrival, prompt and output by column name.
[[nodiscard]] bool is_vidur(const csv_table& table);
[[nodiscard]] trace read_vidur(text_source& source, csv_table& table);
/// BurstGPT: whole seconds, failed requests with an empty response.
[[nodiscard]] bool is_burstgpt(const csv_table& table);
[[nodiscard]] trace read_burstgpt(text_source& source, csv_table& table);

}  // namespace octavo::traces
