// Writes a trace as octavo.trace/1 JSON lines; reading them back gives an equal trace.
#pragma once

#include <filesystem>
#include <ostream>

#include "core/error.hpp"
#include "traces/trace.hpp"

namespace octavo::traces {

/// Writes `t` to a stream. Throws input_error when the stream fails.
void write_trace(const trace& t, std::ostream& out);

/// Writes `t` to a file, gzipped where its name ends in `.gz`. Throws
/// input_error when the file cannot be written.
void write_trace(const trace& t, const std::filesystem::path& file);

}  // namespace octavo::traces
