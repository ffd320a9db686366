// Streams, events, graphs, copies and launches by the CUDA runtime.
#include "gpu/runtime/stream.hpp"

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "gpu/runtime/cuda_check.hpp"
#include "gpu/runtime/device.hpp"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {

struct stream::state {
  cudaStream_t stream = nullptr;
  int device = 0;
  bool reads_pageable = false;  // copies may read memory that is not pinned in place
};

struct event::state {
  cudaEvent_t event = nullptr;  // null: nothing was recorded
  bool timed = false;
};

struct graph::state {
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t executable = nullptr;

  ~state() {
    if (executable != nullptr) static_cast<void>(cudaGraphExecDestroy(executable));
    if (captured != nullptr) static_cast<void>(cudaGraphDestroy(captured));
  }
};

// ---- streams ----------------------------------------------------------------

stream::stream() : state_(std::make_unique<state>()) {
  state_->device = current_device();
  cuda_check(cudaStreamCreateWithFlags(&state_->stream, cudaStreamNonBlocking),
             "cudaStreamCreateWithFlags");
  int reads = 0;
  cuda_check(cudaDeviceGetAttribute(&reads, cudaDevAttrPageableMemoryAccess, state_->device),
             "cudaDeviceGetAttribute");
  state_->reads_pageable = reads != 0;
}
stream::stream(stream&&) noexcept = default;
stream& stream::operator=(stream&& o) noexcept {
  std::swap(state_, o.state_);
  return *this;
}

stream::~stream() {
  if (state_ == nullptr) return;
  static_cast<void>(cudaStreamSynchronize(state_->stream));
  static_cast<void>(cudaStreamDestroy(state_->stream));
}

int stream::device() const {
  return state_->device;
}

cudaStream_t cuda_stream(stream& s) {
  return s.native().stream;
}

void stream::synchronize() {
  cuda_check(cudaStreamSynchronize(state_->stream), "cudaStreamSynchronize");
}

void stream::wait(const event& e) {
  if (e.native().event == nullptr) return;
  cuda_check(cudaStreamWaitEvent(state_->stream, e.native().event, 0), "cudaStreamWaitEvent");
}

void stream::begin_capture() {
  cuda_use_device(state_->device);
  cuda_check(cudaStreamBeginCapture(state_->stream, cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
}

graph stream::end_capture() {
  auto g = std::make_unique<graph::state>();
  cuda_check(cudaStreamEndCapture(state_->stream, &g->captured), "cudaStreamEndCapture");
  return graph(std::move(g));
}

// ---- events -----------------------------------------------------------------

event::event(bool timed) : state_(std::make_unique<state>()) {
  state_->timed = timed;
}
event::event(event&&) noexcept = default;
event& event::operator=(event&& o) noexcept {
  std::swap(state_, o.state_);
  return *this;
}
event::~event() {
  if (state_ == nullptr || state_->event == nullptr) return;
  static_cast<void>(cudaEventDestroy(state_->event));
}

// The runtime's events belong to the device that they are first recorded on.
void event::record(stream& s) {
  if (state_->event == nullptr) {
    cuda_use_device(s.device());
    const unsigned flags = state_->timed ? cudaEventDefault : cudaEventDisableTiming;
    cuda_check(cudaEventCreateWithFlags(&state_->event, flags), "cudaEventCreateWithFlags");
  }
  cuda_check(cudaEventRecord(state_->event, s.native().stream), "cudaEventRecord");
}

void event::synchronize() {
  if (state_->event == nullptr) return;
  cuda_check(cudaEventSynchronize(state_->event), "cudaEventSynchronize");
}

bool event::ready() {
  if (state_->event == nullptr) return true;
  const auto code = cudaEventQuery(state_->event);
  if (code == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  cuda_check(code, "cudaEventQuery");
  return true;
}

double event::elapsed_ms(const event& from, const event& to) {
  float ms = 0;
  cuda_check(cudaEventElapsedTime(&ms, from.state_->event, to.state_->event),
             "cudaEventElapsedTime");
  return static_cast<double>(ms);
}

// ---- graphs -----------------------------------------------------------------

graph::graph(std::unique_ptr<state> s) : state_(std::move(s)) {}
graph::graph(graph&&) noexcept = default;
graph& graph::operator=(graph&&) noexcept = default;
graph::~graph() = default;

void graph::instantiate() {
  if (state_->executable != nullptr) return;
  cuda_check(cudaGraphInstantiateWithFlags(&state_->executable, state_->captured, 0),
             "cudaGraphInstantiateWithFlags");
}

void graph::launch(stream& s) {
  cuda_use_device(s.device());
  instantiate();
  cuda_check(cudaGraphLaunch(state_->executable, s.native().stream), "cudaGraphLaunch");
}

// ---- copies -----------------------------------------------------------------

namespace {

void copy(stream& s, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return;
  cuda_check(cudaMemcpyAsync(to, from, bytes, kind, s.native().stream), "cudaMemcpyAsync");
}

bool is_pinned(const void* host) {
  cudaPointerAttributes of{};
  cuda_check(cudaPointerGetAttributes(&of, host), "cudaPointerGetAttributes");
  return of.type != cudaMemoryTypeUnregistered;
}

}  // namespace

// Memory that is not pinned goes through a buffer of the driver's at the call, but for
// devices that read it in place (HMM, Grace Hopper): they may do so later.
void copy_to_device(stream& s, void* device, const void* host, std::size_t bytes) {
  copy(s, device, host, bytes, cudaMemcpyHostToDevice);
  if (bytes > 0 && s.native().reads_pageable && !is_pinned(host)) s.synchronize();
}

void copy_to_host(stream& s, void* host, const void* device, std::size_t bytes) {
  copy(s, host, device, bytes, cudaMemcpyDeviceToHost);
}

void copy_on_device(stream& s, void* to, const void* from, std::size_t bytes) {
  copy(s, to, from, bytes, cudaMemcpyDefault);
}

void fill_bytes(stream& s, void* device, int value, std::size_t bytes) {
  if (bytes == 0) return;
  cuda_check(cudaMemsetAsync(device, value, bytes, s.native().stream), "cudaMemsetAsync");
}

// ---- launches ---------------------------------------------------------------

namespace {

/// Kernels may use more than 48 KiB of shared memory only once this was asked for.
cudaError_t allow_shared_bytes(const void* kernel, int device, std::size_t bytes) {
  constexpr std::size_t free_bytes = 48 << 10;
  if (bytes <= free_bytes) return cudaSuccess;
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, std::size_t> allowed;
  const std::lock_guard lock(mutex);
  auto& most = allowed[{kernel, device}];
  if (bytes <= most) return cudaSuccess;
  const auto code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(bytes));
  if (code == cudaSuccess) most = bytes;
  return code;
}

std::string describe(const launch_shape& shape) {
  const auto& [x, y, z] = std::tuple(shape.grid.x, shape.grid.y, shape.grid.z);
  return "launch of " + std::string(shape.name != nullptr ? shape.name : "a kernel") + " with " +
         std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z) + " blocks of " +
         std::to_string(shape.block.x * shape.block.y * shape.block.z) + " threads and " +
         std::to_string(shape.shared_bytes) + " bytes of shared memory";
}

}  // namespace

void launch_native(stream& s, const launch_shape& shape, const void* kernel, void** arguments) {
  cuda_use_device(s.device());
  auto code = allow_shared_bytes(kernel, s.device(), shape.shared_bytes);
  if (code == cudaSuccess) {
    cudaStream_t to = s.native().stream;
    code = shape.cooperative ? cudaLaunchCooperativeKernel(kernel, shape.grid, shape.block,
                                                           arguments, shape.shared_bytes, to)
                             : cudaLaunchKernel(kernel, shape.grid, shape.block, arguments,
                                                shape.shared_bytes, to);
  }
  if (code != cudaSuccess) cuda_check(code, describe(shape).c_str());
}

}  // namespace octavo::gpu
