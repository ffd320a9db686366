// Workspace checks: see gemm_workspace.hpp.
#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"

#include <string>

#include "core/error.hpp"

namespace octavo::gpu {

void check_workspace(const gemm_workspace& workspace, const gemm_needs& needs, const char* kernel) {
  const auto check = [&](const char* field, std::size_t given, std::size_t needed) {
    if (given >= needed) return;
    throw input_error(std::string(kernel) + ": workspace." + field + " is " +
                      std::to_string(given) + "; this product needs " + std::to_string(needed));
  };
  check("bytes", workspace.data == nullptr ? 0 : workspace.bytes, needs.bytes);
  check("counter_count",
        workspace.counters == nullptr ? 0 : static_cast<std::size_t>(workspace.counter_count),
        static_cast<std::size_t>(needs.counters));
}

}  // namespace octavo::gpu
