// Ranks joined by NCCL: see nccl_communicator.cuda.hpp.
#include "gpu/executor/nccl_communicator.cuda.hpp"

#include <chrono>

#include "gpu/kernels/rank_sum/rank_sum.hpp"
#include "gpu/runtime/cuda_check.hpp"
#include "gpu/runtime/device.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/runtime/vendor_library.hpp"

namespace octavo::gpu {
namespace {

// The part of NCCL's binary interface that is used: names and values of nccl.h, the same
// in all versions 2.
using nccl_result = int;
constexpr nccl_result success = 0;
constexpr int float32 = 7, operation_sum = 0;

struct functions {
  nccl_result (*ncclCommInitAll)(void** made, int count, const int* devices);
  nccl_result (*ncclCommDestroy)(void*);
  nccl_result (*ncclCommAbort)(void*);
  nccl_result (*ncclCommGetAsyncError)(void*, nccl_result*);
  nccl_result (*ncclAllReduce)(const void* from, void* to, std::size_t count, int type,
                               int operation, void*, cudaStream_t);
  nccl_result (*ncclAllGather)(const void* from, void* to, std::size_t count, int type, void*,
                               cudaStream_t);
  nccl_result (*ncclGroupStart)();
  nccl_result (*ncclGroupEnd)();
  const char* (*ncclGetErrorString)(nccl_result);
};

struct nccl_library {
  functions call{};
  std::string problem;
};

nccl_library open() {
  vendor_library found({"libnccl.so.2", "libnccl.so"});
  nccl_library made;
  functions& f = made.call;
  found.find(f.ncclCommInitAll, "ncclCommInitAll");
  found.find(f.ncclCommDestroy, "ncclCommDestroy");
  found.find(f.ncclCommAbort, "ncclCommAbort");
  found.find(f.ncclCommGetAsyncError, "ncclCommGetAsyncError");
  found.find(f.ncclAllReduce, "ncclAllReduce");
  found.find(f.ncclAllGather, "ncclAllGather");
  found.find(f.ncclGroupStart, "ncclGroupStart");
  found.find(f.ncclGroupEnd, "ncclGroupEnd");
  found.find(f.ncclGetErrorString, "ncclGetErrorString");
  made.problem = found.problem();
  return made;
}

const nccl_library& nccl() {
  static const nccl_library opened = open();
  return opened;
}

void check(nccl_result code, const char* call, int device) {
  if (code == success) return;
  throw device_error(call, device, std::string("NCCL: ") + nccl().call.ncclGetErrorString(code),
                     "NCCL_DEBUG=WARN in the environment makes NCCL say more");
}

}  // namespace

const std::string& nccl_problem() {
  return nccl().problem;
}

nccl_communicator::nccl_communicator(const std::vector<int>& devices) {
  if (!nccl_problem().empty()) {
    throw device_error("nccl_communicator", devices.empty() ? 0 : devices[0], nccl_problem(),
                       "install NCCL, or put its folder into LD_LIBRARY_PATH");
  }
  for (const int device : devices) {
    members_.push_back(std::make_unique<member>());
    members_.back()->device = device;
  }
  std::vector<void*> handles(devices.size());
  check(
      nccl().call.ncclCommInitAll(handles.data(), static_cast<int>(devices.size()), devices.data()),
      "ncclCommInitAll", devices.empty() ? 0 : devices[0]);
  for (std::size_t rank = 0; rank < handles.size(); ++rank) members_[rank]->handle = handles[rank];
  const int current = current_device();
  connect();
  set_device(current);
}

nccl_communicator::~nccl_communicator() {
  for (const auto& m : members_) {
    if (m->handle != nullptr) static_cast<void>(nccl().call.ncclCommDestroy(m->handle));
  }
}

// Connections are made by the first sum and the first gather, in which ranks wait for
// each other: here, where none can have failed, and not within a step.
void nccl_communicator::connect() {
  std::vector<stream> streams;
  std::vector<device_array<float>> values;
  for (const auto& m : members_) {
    set_device(m->device);
    streams.emplace_back();
    values.emplace_back(1 + members_.size());
    values.back().fill_zero(streams.back());
  }
  const auto on_all = [&](const char* name, auto&& queue) {
    check(nccl().call.ncclGroupStart(), "ncclGroupStart", members_[0]->device);
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      check(queue(*members_[rank], values[rank].data(), cuda_stream(streams[rank])), name,
            members_[rank]->device);
    }
    check(nccl().call.ncclGroupEnd(), "ncclGroupEnd", members_[0]->device);
  };
  on_all("ncclAllReduce", [](member& m, float* at, cudaStream_t on) {
    return nccl().call.ncclAllReduce(at, at, 1, float32, operation_sum, m.handle, on);
  });
  on_all("ncclAllGather", [](member& m, float* at, cudaStream_t on) {
    return nccl().call.ncclAllGather(at, at + 1, 1, float32, m.handle, on);
  });
  for (stream& s : streams) s.synchronize();
}

nccl_communicator::member& nccl_communicator::working(int rank) {
  member& m = *members_.at(static_cast<std::size_t>(rank));
  require_working();
  nccl_result state = success;
  check(nccl().call.ncclCommGetAsyncError(m.handle, &state), "ncclCommGetAsyncError", m.device);
  check(state, "ncclCommGetAsyncError", m.device);
  return m;
}

void nccl_communicator::sum(stream& on, int rank, const partial_rows& partial, dtype type,
                            void* output) {
  const std::lock_guard lock(members_.at(static_cast<std::size_t>(rank))->mutex);
  member& m = working(rank);
  if (!pass_) {
    check(nccl().call.ncclAllReduce(partial.values, partial.values, partial.count(), float32,
                                    operation_sum, m.handle, cuda_stream(on)),
          "ncclAllReduce", m.device);
  }
  rank_sum_params convert;
  convert.ranks = 1;
  convert.count = static_cast<std::int64_t>(partial.count());
  convert.parts[0] = partial.values;
  convert.type = type;
  convert.output = output;
  rank_sum(convert, on);
}

void nccl_communicator::gather(stream& on, int rank, const float* part, std::size_t count,
                               float* output) {
  const std::lock_guard lock(members_.at(static_cast<std::size_t>(rank))->mutex);
  member& m = working(rank);
  if (pass_) return;
  check(nccl().call.ncclAllGather(part, output, count, float32, m.handle, cuda_stream(on)),
        "ncclAllGather", m.device);
}

// A rank that holds its mutex for long waits within NCCL for one that will not come: the
// abort itself is what lets it go.
void nccl_communicator::abandon() {
  abandoned_ = true;
  for (const auto& m : members_) {
    std::unique_lock lock(m->mutex, std::chrono::seconds(1));
    if (m->handle != nullptr) static_cast<void>(nccl().call.ncclCommAbort(m->handle));
    m->handle = nullptr;
  }
}

}  // namespace octavo::gpu
