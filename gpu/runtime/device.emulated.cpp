// Devices, memory and launches of the emulator.
#include "gpu/runtime/device.hpp"

#include <thread>

#include "gpu/runtime/emulated_queue.hpp"
#include "gpu/runtime/launch.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/simt/grid.hpp"
#include "gpu/simt/memory_map.hpp"

namespace octavo::gpu {
namespace {

thread_local int chosen_device = 0;

void require_device(const char* call, int index) {
  if (index >= 0 && index < simt::device_count()) return;
  throw device_error(call, index, "there is no such device",
                     "devices are 0 to " + std::to_string(simt::device_count() - 1));
}

void refuse_in_capture(const char* call) {
  if (emulated::captures == 0) return;
  throw device_error(call, chosen_device, "this thread captures a graph",
                     "allocate before the capture");
}

}  // namespace

std::vector<device_info> devices() {
  std::vector<device_info> all;
  for (int i = 0; i < simt::device_count(); ++i) {
    device_info d;
    d.index = i;
    d.name = "emulated sm_90";
    d.compute_major = 9;
    d.compute_minor = 0;
    d.multiprocessors = 4;
    d.memory_bytes = simt::device_bytes();
    d.shared_bytes_per_block_max = 227 << 10;
    d.cache_bytes = 1 << 20;
    all.push_back(d);
  }
  return all;
}

void set_device(int index) {
  require_device("set_device", index);
  chosen_device = index;
}

int current_device() {
  return chosen_device;
}

memory_info device_memory() {
  const auto total = simt::device_bytes();
  return {total - simt::allocated_bytes(chosen_device), total};
}

peer_path path_between(int from, int to) {
  require_device("path_between", from);
  require_device("path_between", to);
  return peer_path::link;
}

void enable_peer_access(int from, int to) {
  require_device("enable_peer_access", from);
  require_device("enable_peer_access", to);
}

void* allocate_device_bytes(std::size_t bytes) {
  refuse_in_capture("allocate_device_bytes");
  return simt::allocate_device(bytes, chosen_device);
}

void free_device_bytes(void* address) noexcept {
  simt::free_device(address);
}

void* allocate_pinned_bytes(std::size_t bytes) {
  refuse_in_capture("allocate_pinned_bytes");
  return simt::allocate_pinned(bytes);
}

void free_pinned_bytes(void* address) noexcept {
  simt::free_pinned(address);
}

void launch_emulated(stream& s, const launch_shape& shape, const void* kernel,
                     std::function<void()> thread) {
  simt::grid_work work;
  work.grid = shape.grid;
  work.block = shape.block;
  work.shared_bytes = shape.shared_bytes;
  work.cooperative = shape.cooperative;
  work.device = s.device();
  work.kernel = shape.name != nullptr ? shape.name : simt::kernel_name(kernel);
  simt::check_shape(work);
  emulated::enqueue(s.native(), {[work, thread = std::move(thread)]() mutable {
                                   work.body = &thread;
                                   simt::run_grid(work);
                                 },
                                 nullptr, 0});
}

}  // namespace octavo::gpu
