// The devices of this machine, and the one that the calling thread works with.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/runtime/device_error.hpp"

namespace octavo::gpu {

struct device_info {
  int index = 0;
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t shared_bytes_per_block_max = 0;
  std::size_t cache_bytes = 0;  // L2
};

struct memory_info {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// All devices; throws device_error, saying why, where the driver gives none.
std::vector<device_info> devices();

/// The device that allocations, streams and events of the calling thread are made on.
void set_device(int index);
int current_device();

memory_info device_memory();

/// How device `from` reaches the memory of device `to`, the slower first.
enum class peer_path {
  none,
  bus,  ///< PCIe
  link  ///< NVLink, or the same device
};
peer_path path_between(int from, int to);

/// Lets kernels of device `from` read and write memory of device `to`.
void enable_peer_access(int from, int to);

}  // namespace octavo::gpu
