// Work of the host that is worth all its cores: repacking weights.
#pragma once

#include <cstddef>
#include <functional>

namespace octavo::gpu {

/// Calls body(0) .. body(count - 1) from as many threads as there are cores, and waits.
/// The first exception is thrown here.
void run_on_host_threads(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace octavo::gpu
