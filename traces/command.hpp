// `octavo trace`: convert, inspect and make request traces.
//
//   octavo trace convert AzureTrace.csv trace.jsonl
//   octavo trace inspect trace.jsonl --json
//   octavo trace synth --requests 400 --prefixes 4 --turns-max 5 --out chat.jsonl
#pragma once

#include <ostream>

namespace octavo::traces {

/// Runs the command. `argv[0]` is its name and the rest its arguments. Returns
/// the exit code: 0, or 2 for input or arguments that cannot be used, which
/// `err` then explains.
int trace_command(int argc, char** argv, std::ostream& out, std::ostream& err);

}  // namespace octavo::traces
