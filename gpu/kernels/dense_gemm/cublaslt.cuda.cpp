// Opening cuBLASLt: see cublaslt.cuda.hpp.
#include "gpu/kernels/dense_gemm/cublaslt.cuda.hpp"

#include "gpu/runtime/device.hpp"
#include "gpu/runtime/vendor_library.hpp"

namespace octavo::gpu::cublaslt {
namespace {

library open() {
  const std::string name = "libcublasLt.so";
  vendor_library found({name + "." + std::to_string(CUDART_VERSION / 1000), name});
  library made;
  functions& f = made.call;
  found.find(f.cublasLtCreate, "cublasLtCreate");
  found.find(f.cublasLtGetStatusString, "cublasLtGetStatusString");
  found.find(f.cublasLtGetVersion, "cublasLtGetVersion");
  found.find(f.cublasLtMatmul, "cublasLtMatmul");
  found.find(f.cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  found.find(f.cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate");
  found.find(f.cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  found.find(f.cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy");
  found.find(f.cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  found.find(f.cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  found.find(f.cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  found.find(f.cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  found.find(f.cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  made.problem = found.problem();
  return made;
}

}  // namespace

const library& opened() {
  static const library made = open();
  return made;
}

void check(status code, const char* call) {
  if (code == success) return;
  constexpr status not_initialized = 1, alloc_failed = 3;
  const char* advice = "";
  if (code == not_initialized) advice = "nvidia-smi shows whether the driver suits the library";
  if (code == alloc_failed) advice = "lower --gpu-memory-utilization";
  if (code == not_supported) advice = "--batch-invariant computes without this library";
  throw device_error(call, current_device(),
                     std::string("cuBLASLt: ") + opened().call.cublasLtGetStatusString(code),
                     advice);
}

}  // namespace octavo::gpu::cublaslt
