// gpu_bench: measures this machine's first device and its kernels; JSON on standard
// output. gpu/check.sh runs it, gpu/bench/report.py makes a table of it.
#include <cstdio>
#include <exception>
#include <iostream>

#include "gpu/bench/bench.hpp"
#include "gpu/kernels/dense_gemm/library_gemm.hpp"

int main() {
  using namespace octavo::gpu;
  try {
    bench_context c{devices().at(0), {}, {}};
    nlohmann::json said;
    said["device"] = {{"name", c.device.name},
                      {"compute", 10 * c.device.compute_major + c.device.compute_minor},
                      {"multiprocessors", c.device.multiprocessors},
                      {"memory_bytes", c.device.memory_bytes},
                      {"cache_bytes", c.device.cache_bytes}};
    said["cublaslt"] = library_gemm_available();
    said["ceilings"] = measure_ceilings(c);
    bench_decode_attention(c);
    bench_prefill_attention(c);
    bench_w4a16(c);
    bench_dense_gemm(c);
    bench_fp8_gemm(c);
    bench_all_reduce(c);
    for (const bench_result& r : c.results) {
      said["results"].push_back({{"kernel", r.kernel},
                                 {"shape", r.shape},
                                 {"microseconds", r.microseconds},
                                 {"bytes", r.bytes},
                                 {"flops", r.flops}});
    }
    std::cout << said.dump(1) << '\n';
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpu_bench: %s\n", problem.what());
    return 1;
  }
}
