// The emulated flavour has no vendor's library: see library_gemm.hpp.
#include "gpu/kernels/dense_gemm/library_gemm.hpp"

#include "gpu/runtime/device_error.hpp"

namespace octavo::gpu {

bool library_gemm_available() {
  return false;
}

bool library_scales_rows() {
  return false;
}

bool library_gemm(stream&, const library_product&) {
  throw device_error("library_gemm", 0, "the emulator has no cuBLASLt",
                     "ask library_gemm_available() first");
}

}  // namespace octavo::gpu
