// Which addresses are memory of an emulated device (or pinned memory, which it
// reaches too): for range checks, limits, and counts of distinct bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/simt/counters.hpp"

namespace octavo::gpu::simt {

/// Allocates device memory, filled with ones (NaN). Throws device_error where the
/// device's limit would be passed.
void* allocate_device(std::size_t bytes, int device);
void free_device(void* address);

/// Allocates host memory that devices reach and asynchronous copies use in place.
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* address);

/// Whether all of the range is pinned memory.
bool is_pinned(const void* address, std::size_t bytes);

/// The problem with this range, or an empty string where it lies in one live
/// allocation.
std::string range_problem(const void* address, std::size_t bytes);

/// Bytes allocated on a device.
std::size_t allocated_bytes(int device);

/// Sets how many devices there are, and the memory of each. Starts as 2 of 1 GiB.
void set_devices(int count, std::size_t bytes_each);
int device_count();
std::size_t device_bytes();

/// Whether an allocation has been written past its end since it was made; names
/// its size if so.
std::string overrun_problem();

/// For counters(): distinct bytes so far, and a fresh start.
void add_distinct_bytes(counts& total);
void forget_distinct_bytes();

/// Notes that a range was touched, for distinct bytes.
void note_touched(const void* address, std::size_t bytes, bool written);

}  // namespace octavo::gpu::simt
