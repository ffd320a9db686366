// cuBLASLt behind library_gemm.hpp. Where it is not installed, our own kernels do
// everything.
#include "gpu/kernels/dense_gemm/library_gemm.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "gpu/kernels/dense_gemm/cublaslt.cuda.hpp"
#include "gpu/runtime/cuda_check.hpp"
#include "gpu/runtime/device.hpp"

namespace octavo::gpu {
namespace {

using cublaslt::check;

const cublaslt::functions& calls() {
  return cublaslt::opened().call;
}

/// Destroys a descriptor; failing to only loses memory.
template <auto destroy>
struct owned {
  void* handle = nullptr;
  owned() = default;
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;
  ~owned() {
    if (handle != nullptr) static_cast<void>((calls().*destroy)(handle));
  }
};
using owned_layout = owned<&cublaslt::functions::cublasLtMatrixLayoutDestroy>;
using owned_operation = owned<&cublaslt::functions::cublasLtMatmulDescDestroy>;
using owned_preference = owned<&cublaslt::functions::cublasLtMatmulPreferenceDestroy>;

cudaDataType_t type_of(dtype type) {
  switch (type) {
    case dtype::float16:
      return CUDA_R_16F;
    case dtype::bfloat16:
      return CUDA_R_16BF;
    case dtype::float8_e4m3:
      return CUDA_R_8F_E4M3;
    case dtype::float32:
      return CUDA_R_32F;
  }
  return CUDA_R_32F;
}

/// One handle a device, made at its first use and kept to the end of the process. Null where
/// it would have to be made and must not be.
cublaslt::handle handle_of(int device, bool may_make) {
  static std::mutex lock;
  static std::map<int, cublaslt::handle> handles;
  const std::lock_guard guard(lock);
  cublaslt::handle& handle = handles[device];
  if (handle == nullptr && may_make) check(calls().cublasLtCreate(&handle), "cublasLtCreate");
  return handle;
}

bool is_capturing(stream& on) {
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(cuda_stream(on), &state), "cudaStreamIsCapturing");
  return state != cudaStreamCaptureStatusNone;
}

template <class T>
void set_operation(cublaslt::operation operation, cublaslt::operation_attribute attribute,
                   const T& value) {
  check(calls().cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}

template <class T>
void set_preference(cublaslt::preference preference, cublaslt::preference_attribute attribute,
                    const T& value) {
  check(calls().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

/// The library counts columns first: our output is its transpose, weights^T x
/// activations, of outputs x tokens.
struct descriptors {
  owned_operation operation;
  owned_layout weights;
  owned_layout activations;
  owned_layout output;

  explicit descriptors(const library_product& p) {
    check(calls().cublasLtMatmulDescCreate(&operation.handle, cublaslt::compute_32f, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    set_operation(operation.handle, cublaslt::transpose_a, cublaslt::transposed);
    if (p.bias != nullptr) {
      set_operation(operation.handle, cublaslt::epilogue, cublaslt::bias_epilogue);
      set_operation(operation.handle, cublaslt::bias_pointer, p.bias);
    }
    if (p.weight_scale != nullptr) {
      set_operation(operation.handle, cublaslt::a_scale_pointer, p.weight_scale);
    }
    if (p.activation_scale != nullptr) {
      set_operation(operation.handle, cublaslt::b_scale_pointer, p.activation_scale);
    }
    if (p.row_scales) {
      set_operation(operation.handle, cublaslt::a_scale_mode, cublaslt::row_scales);
      set_operation(operation.handle, cublaslt::b_scale_mode, cublaslt::row_scales);
    }
    make(weights, type_of(p.type), p.inputs, p.outputs, p.inputs);
    make(activations, type_of(p.type), p.inputs, p.tokens, p.inputs);
    make(output, type_of(p.output_type), p.outputs, p.tokens, p.output_stride);
  }

  static void make(owned_layout& layout, cudaDataType_t type, int rows, int columns, int leading) {
    check(calls().cublasLtMatrixLayoutCreate(&layout.handle, type, static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), leading),
          "cublasLtMatrixLayoutCreate");
  }
};

/// Nothing where the library has no kernel.
std::optional<cublaslt::algorithm> search(cublaslt::handle library, const descriptors& d) {
  owned_preference preference;
  check(calls().cublasLtMatmulPreferenceCreate(&preference.handle),
        "cublasLtMatmulPreferenceCreate");
  set_preference(preference.handle, cublaslt::workspace_bytes_max, library_workspace_bytes);
  for (const auto attribute : {cublaslt::alignment_a, cublaslt::alignment_b, cublaslt::alignment_c,
                               cublaslt::alignment_d}) {
    set_preference(preference.handle, attribute, std::uint32_t{16});
  }
  cublaslt::candidate found{};
  int count = 0;
  const cublaslt::status answer = calls().cublasLtMatmulAlgoGetHeuristic(
      library, d.operation.handle, d.weights.handle, d.activations.handle, d.output.handle,
      d.output.handle, preference.handle, 1, &found, &count);
  if (answer == cublaslt::not_supported) return std::nullopt;
  check(answer, "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0 || found.state != cublaslt::success) return std::nullopt;
  return found.way;
}

/// The library's choice for a shape, asked for once: asking takes longer than a small
/// product. Nothing where it was not asked for and must not be.
std::optional<cublaslt::algorithm> algorithm_for(cublaslt::handle library, int device,
                                                 const library_product& p, const descriptors& d,
                                                 bool may_search) {
  using shape = std::tuple<int, int, int, int, int, dtype, dtype, bool, bool>;
  static std::mutex lock;
  static std::map<shape, std::optional<cublaslt::algorithm>> known;
  const shape key{device, p.tokens,      p.outputs,         p.inputs,    p.output_stride,
                  p.type, p.output_type, p.bias != nullptr, p.row_scales};
  const std::lock_guard guard(lock);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  if (!may_search) return std::nullopt;
  // Prompts come in any length: forget rather than grow without end.
  constexpr std::size_t shapes_max = 4096;
  if (known.size() >= shapes_max) known.clear();
  return known[key] = search(library, d);
}

}  // namespace

bool library_gemm_available() {
  return cublaslt::opened().problem.empty();
}

bool library_scales_rows() {
  if (!library_gemm_available() ||
      calls().cublasLtGetVersion() < cublaslt::row_scales_version_min) {
    return false;
  }
  int major = 0;
  int minor = 0;
  const int device = current_device();
  cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  cuda_check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "cudaDeviceGetAttribute");
  return major == 9 && minor == 0;
}

// Neither can a handle be made in a capture, nor can the library be asked for its choice in
// all of its versions (13.3 cannot).
bool library_gemm(stream& on, const library_product& p) {
  cuda_use_device(on.device());
  check_workspace(p.workspace, {library_workspace_bytes, 0}, "library_gemm");
  const bool free = !is_capturing(on);
  cublaslt::handle library = handle_of(on.device(), free);
  if (library == nullptr) return false;
  const descriptors d(p);
  const auto algorithm = algorithm_for(library, on.device(), p, d, free);
  if (!algorithm) return false;
  const float one = 1.0F;
  const float zero = 0.0F;
  check(calls().cublasLtMatmul(library, d.operation.handle, &one, p.weights, d.weights.handle,
                               p.activations, d.activations.handle, &zero, p.output,
                               d.output.handle, p.output, d.output.handle, &*algorithm,
                               p.workspace.data, library_workspace_bytes, cuda_stream(on)),
        "cublasLtMatmul");
  return true;
}

}  // namespace octavo::gpu
