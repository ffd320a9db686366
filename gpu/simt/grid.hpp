// Runs a launch: its blocks in the order of the schedule, spread over OS threads.
#pragma once

#include "gpu/simt/gang.hpp"

namespace octavo::gpu::simt {

/// Throws device_error for a shape that no device accepts.
void check_shape(const grid_work& work);

/// Runs all blocks of a launch to their end. Throws device_error for what a thread
/// got wrong, and for a deadlock.
void run_grid(const grid_work& work);

/// The name of a kernel by its address, as the linker knows it.
std::string kernel_name(const void* kernel);

}  // namespace octavo::gpu::simt
