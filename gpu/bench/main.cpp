// gpu_bench: measures this machine's first device and its kernels; JSON on standard
// output. gpu/check.sh runs it, gpu/bench/report.py makes a table of it.
//
//   gpu_bench [--smoke] [KERNEL...]
#include <cstdio>
#include <exception>
#include <iostream>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "gpu/bench/bench.hpp"
#include "gpu/kernels/dense_gemm/library_gemm.hpp"

namespace octavo::gpu {

std::map<std::string, bench_function>& all_benches() {
  static std::map<std::string, bench_function> all;
  return all;
}

namespace {

struct bench_options {
  bool smoke = false;
  std::map<std::string, bench_function> chosen;
};

bench_options options_of(std::span<char*> arguments) {
  bench_options o;
  for (const std::string_view word : arguments) {
    if (word == "--smoke") {
      o.smoke = true;
      continue;
    }
    const auto found = all_benches().find(std::string{word});
    if (found != all_benches().end()) {
      o.chosen.insert(*found);
      continue;
    }
    std::string known = "--smoke";
    for (const auto& [kernel, run] : all_benches()) known += ", " + kernel;
    throw input_error("'" + std::string{word} + "' is not allowed; there are: " + known);
  }
  if (o.chosen.empty()) o.chosen = all_benches();
  return o;
}

nlohmann::json measure(const bench_options& options) {
  const auto all = devices();
  if (all.empty()) throw device_error("gpu_bench", -1, "this machine has no device", "");
  bench_context c{all.front(), {}, options.smoke, {}};
  nlohmann::json said;
  said["device"] = {{"name", c.device.name},
                    {"compute", 10 * c.device.compute_major + c.device.compute_minor},
                    {"multiprocessors", c.device.multiprocessors},
                    {"memory_bytes", c.device.memory_bytes},
                    {"cache_bytes", c.device.cache_bytes}};
  said["cublaslt"] = library_gemm_available();
  said["ceilings"] = measure_ceilings(c);
  for (const auto& [kernel, run] : options.chosen) run(c);
  for (const bench_result& r : c.results) {
    said["results"].push_back({{"kernel", r.kernel},
                               {"shape", r.shape},
                               {"microseconds", r.microseconds},
                               {"bytes", r.bytes},
                               {"flops", r.flops},
                               {"rate", r.rate}});
  }
  return said;
}

}  // namespace
}  // namespace octavo::gpu

int main(int argc, char** argv) {
  using namespace octavo;
  try {
    const auto options = gpu::options_of({argv + 1, argv + argc});
    std::cout << gpu::measure(options).dump(1) << '\n';
    return 0;
  } catch (const input_error& problem) {
    std::fprintf(stderr, "gpu_bench: %s\n", problem.what());
    return 2;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpu_bench: %s\n", problem.what());
    return 1;
  }
}
