// Writes a trace as octavo.trace/1 JSON lines; reading them back gives an equal trace.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>

#include "core/error.hpp"
#include "traces/trace.hpp"

namespace octavo::traces {

/// Writes `t` to a stream. Throws input_error when the stream fails.
void write_trace(const trace& t, std::ostream& out);

/// Writes `t` to a file, gzipped where its name ends in `.gz`. Throws
/// input_error when the file cannot be written.
void write_trace(const trace& t, const std::filesystem::path& file);

/// The lines that such a file is made of, for writers that hold no whole trace: the header
/// (`t.prefix_block` and `t.notes`), and request number `index` of `t`. Each ends in a line
/// feed and is appended to `line`.
void append_header(std::string& line, const trace& t);
void append_request(std::string& line, const trace& t, std::uint32_t index);

}  // namespace octavo::traces
