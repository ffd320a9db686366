// The report as files: JSON with stable keys, and CSV with one line a request.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/cli/prepare.hpp"
#include "sim/report/summary.hpp"

namespace octavo::sim {

/// The report's keys: seconds, tokens, fractions. `wall_s` is the run's own time.
[[nodiscard]] nlohmann::ordered_json to_json(const prepared_run& run, const run_summary& summary,
                                             double wall_s);

/// id, arrival_s, prompt_tokens, output_tokens, cached_tokens, queue_s, ttft_s,
/// tpot_s, e2e_s, preemptions, replica, finish. Times that do not exist are empty.
void write_requests_csv(const prepared_run& run, const simulation_outcome& outcome,
                        std::ostream& out);

/// Writes a file through `fill(std::ostream&)`. Throws input_error naming the path
/// where it cannot be written.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& fill);

}  // namespace octavo::sim
