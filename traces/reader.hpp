// Reads a request trace in any of the forms people hold, recognised by content:
//
//   octavo.trace/1 (JSON lines, or one document with a "requests" array),
//   Azure CSV, Vidur/Splitwise CSV, BurstGPT CSV,
//   Mooncake JSON lines, Bailian JSON lines, ShareGPT JSON; each also gzipped.
//
// A line that cannot be used ends the reading with an error; what a form makes
// the reader assume or leave out stands in trace::notes.
#pragma once

#include <filesystem>

#include "core/error.hpp"
#include "traces/trace.hpp"

namespace octavo::traces {

/// Reads `file`. Throws input_error that names file, line and field, what was
/// found and what is expected. Memory beyond the trace is bounded by the longest
/// line (by the file for forms that are one JSON document).
[[nodiscard]] trace read_trace(const std::filesystem::path& file);

}  // namespace octavo::traces
