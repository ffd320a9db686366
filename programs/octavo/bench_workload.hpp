// What `octavo bench` runs: sets of requests that all arrive at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace octavo {

struct bench_request {
  std::vector<token_id> prompt;
  std::int32_t max_tokens = 1;
};

struct bench_workload {
  std::string name;
  std::vector<bench_request> requests;
};

/// Names of the workloads that need no file, in the order in which they run.
[[nodiscard]] const std::vector<std::string>& bench_workload_names();

/// The same requests for the same arguments, of tokens 0 … vocabulary - 1:
///   single   one request, 32 tokens in, 128 out: the rate of one stream
///   prefill  one request, 512 tokens in, 1 out: the rate of reading
///   batch    `streams` requests, 32 tokens in, 128 out
///   mixed    32 requests that share their first 400 tokens, then 16 to 256 of
///            their own, 16 to 128 out
/// Throws input_error for another name.
[[nodiscard]] bench_workload make_bench_workload(const std::string& name, std::int32_t streams,
                                                 std::int32_t vocabulary);

/// Reads JSON lines of {"prompt": [token, …], "max_tokens": n}. Throws input_error
/// naming file, line and field.
[[nodiscard]] bench_workload read_bench_workload(const std::string& path);

}  // namespace octavo
