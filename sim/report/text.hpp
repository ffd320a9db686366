// The report for a person: the answer in one sentence first, then the numbers.
#pragma once

#include <ostream>
#include <string>

#include "sim/report/summary.hpp"

namespace octavo::sim {

/// One sentence: what meets what, at which rate, and what limits it.
[[nodiscard]] std::string answer_sentence(const prepared_run& run, const run_summary& summary);

/// The whole report. An unstable run shows no latencies: they would only tell
/// how long the trace is.
void print_report(const prepared_run& run, const run_summary& summary, double wall_s,
                  std::ostream& out);

/// "12.3 ms", "1.85 s": three digits and the unit that fits.
[[nodiscard]] std::string format_seconds(double seconds);
[[nodiscard]] std::string_view to_string(limiting_factor limit);

}  // namespace octavo::sim
