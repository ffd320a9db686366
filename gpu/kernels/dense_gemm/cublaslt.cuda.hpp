// The part of cuBLASLt's binary interface that library_gemm uses, and the library
// itself, opened when first asked for: it need be neither there to build with nor there
// to run. Names and values are those of cublasLt.h, the same in versions 11 to 13; scales
// of rows are known from version 12.9 on.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace octavo::gpu::cublaslt {

using status = int;        // cublasStatus_t
using handle = void*;      // cublasLtHandle_t
using operation = void*;   // cublasLtMatmulDesc_t
using layout = void*;      // cublasLtMatrixLayout_t
using preference = void*;  // cublasLtMatmulPreference_t

inline constexpr status success = 0;
inline constexpr status not_supported = 15;
inline constexpr int compute_32f = 68;         // CUBLAS_COMPUTE_32F
inline constexpr std::int32_t transposed = 1;  // CUBLAS_OP_T
inline constexpr std::uint32_t bias_epilogue = 4;

/// cublasLtMatmulDescAttributes_t
enum operation_attribute : int {
  transpose_a = 3,
  epilogue = 7,
  bias_pointer = 8,
  a_scale_pointer = 17,
  b_scale_pointer = 18,
  bias_data_type = 26,
  a_scale_mode = 31,
  b_scale_mode = 32,
};

/// CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F: a float for each row of A and column of B.
inline constexpr std::int32_t row_scales = 3;
inline constexpr std::size_t row_scales_version_min = 120900;

/// cublasLtMatmulPreferenceAttributes_t
enum preference_attribute : int {
  workspace_bytes_max = 1,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};

/// cublasLtMatmulAlgo_t
struct algorithm {
  std::uint64_t data[8];
};

/// cublasLtMatmulHeuristicResult_t
struct candidate {
  algorithm way;
  std::size_t workspace_bytes;
  status state;
  float waves;
  int reserved[4];
};

struct functions {
  status (*cublasLtCreate)(handle*);
  const char* (*cublasLtGetStatusString)(status);
  std::size_t (*cublasLtGetVersion)();
  status (*cublasLtMatmul)(handle, operation, const void* alpha, const void* a, layout,
                           const void* b, layout, const void* beta, const void* c, layout, void* d,
                           layout, const algorithm*, void* workspace, std::size_t bytes,
                           cudaStream_t);
  status (*cublasLtMatmulAlgoGetHeuristic)(handle, operation, layout a, layout b, layout c,
                                           layout d, preference, int wanted, candidate*,
                                           int* given);
  status (*cublasLtMatmulDescCreate)(operation*, int compute_type, cudaDataType scale_type);
  status (*cublasLtMatmulDescSetAttribute)(operation, int, const void*, std::size_t);
  status (*cublasLtMatmulDescDestroy)(operation);
  status (*cublasLtMatrixLayoutCreate)(layout*, cudaDataType, std::uint64_t rows,
                                       std::uint64_t columns, std::int64_t leading);
  status (*cublasLtMatrixLayoutDestroy)(layout);
  status (*cublasLtMatmulPreferenceCreate)(preference*);
  status (*cublasLtMatmulPreferenceSetAttribute)(preference, int, const void*, std::size_t);
  status (*cublasLtMatmulPreferenceDestroy)(preference);
};

struct library {
  functions call{};
  std::string problem;  ///< why it cannot be used; empty where it can
};

/// Opens it at the first call.
const library& opened();

/// Throws device_error, naming `call`, where `code` is no success.
void check(status code, const char* call);

}  // namespace octavo::gpu::cublaslt
