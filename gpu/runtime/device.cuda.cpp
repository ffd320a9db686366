// Devices and memory by the CUDA runtime.
#include "gpu/runtime/device.hpp"

#include "gpu/runtime/cuda_check.hpp"
#include "gpu/runtime/memory.hpp"

namespace octavo::gpu {
namespace {

const char* advice_for(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "lower --gpu-memory-utilization or --max-model-len, or stop what else uses the device";
    case cudaErrorInsufficientDriver:
      return "there is no driver, or one older than the CUDA that this was built with: nvidia-smi "
             "shows the newest CUDA that it takes";
    case cudaErrorNoDevice:
    case cudaErrorSystemDriverMismatch:
      return "nvidia-smi shows whether this machine has a device and which driver";
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
      return "this build holds no code for this device; set CMAKE_CUDA_ARCHITECTURES";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
      return "the process must be started again; compute-sanitizer finds the kernel";
    case cudaErrorECCUncorrectable:
      return "the device's memory is faulty; see nvidia-smi -q -d ECC";
    case cudaErrorDevicesUnavailable:
      return "another process holds the device exclusively";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
      return "a capture must hold no allocation, synchronization or pageable copy";
    default:
      return "";
  }
}

}  // namespace

void cuda_check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  // Errors that do not break the context are forgotten, so that they show once.
  cudaGetLastError();
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess) device = -1;
  throw device_error(call, device,
                     std::string(cudaGetErrorName(code)) + ", " + cudaGetErrorString(code),
                     advice_for(code));
}

void cuda_use_device(int device) {
  if (current_device() != device) set_device(device);
}

std::vector<device_info> devices() {
  int count = 0;
  cuda_check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::vector<device_info> all;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p{};
    cuda_check(cudaGetDeviceProperties(&p, i), "cudaGetDeviceProperties");
    device_info d;
    d.index = i;
    d.name = p.name;
    d.compute_major = p.major;
    d.compute_minor = p.minor;
    d.multiprocessors = p.multiProcessorCount;
    d.memory_bytes = p.totalGlobalMem;
    d.shared_bytes_per_block_max = p.sharedMemPerBlockOptin;
    d.cache_bytes = static_cast<std::size_t>(p.l2CacheSize);
    all.push_back(d);
  }
  return all;
}

void set_device(int index) {
  cuda_check(cudaSetDevice(index), "cudaSetDevice");
}

int current_device() {
  int device = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

memory_info device_memory() {
  memory_info m;
  cuda_check(cudaMemGetInfo(&m.free_bytes, &m.total_bytes), "cudaMemGetInfo");
  return m;
}

// Links carry atomics, buses do not.
peer_path path_between(int from, int to) {
  if (from == to) return peer_path::link;
  int possible = 0;
  cuda_check(cudaDeviceCanAccessPeer(&possible, from, to), "cudaDeviceCanAccessPeer");
  if (possible == 0) return peer_path::none;
  int atomics = 0;
  cuda_check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to),
             "cudaDeviceGetP2PAttribute");
  return atomics != 0 ? peer_path::link : peer_path::bus;
}

void enable_peer_access(int from, int to) {
  if (from == to) return;
  if (path_between(from, to) == peer_path::none) {
    throw device_error("enable_peer_access", from,
                       "it cannot reach the memory of device " + std::to_string(to),
                       "nvidia-smi topo -p2p r shows which devices can");
  }
  const int before = current_device();
  set_device(from);
  const auto code = cudaDeviceEnablePeerAccess(to, 0);
  set_device(before);
  if (code == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  cuda_check(code, "cudaDeviceEnablePeerAccess");
}

void* allocate_device_bytes(std::size_t bytes) {
  void* address = nullptr;
  cuda_check(cudaMalloc(&address, bytes),
             ("cudaMalloc of " + std::to_string(bytes) + " bytes").c_str());
  return address;
}

// Freeing fails only where the context is lost, which other calls report.
void free_device_bytes(void* address) noexcept {
  static_cast<void>(cudaFree(address));
}

void* allocate_pinned_bytes(std::size_t bytes) {
  void* address = nullptr;
  cuda_check(cudaHostAlloc(&address, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
             ("cudaHostAlloc of " + std::to_string(bytes) + " bytes").c_str());
  return address;
}

void free_pinned_bytes(void* address) noexcept {
  static_cast<void>(cudaFreeHost(address));
}

}  // namespace octavo::gpu
