// Which device a command runs on, and `octavo devices`, which says what there is.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "gpu/executor/backend.hpp"

namespace octavo {

/// What `--device` may name, beside what a command adds.
enum class device_kind { cpu, cuda, cuda_emulated };

/// "auto", "cpu", "cuda" or "cuda-emulated". auto: cuda where there is a device and the
/// model has a form for it, else cpu. Throws input_error, saying what was found, where
/// the named one cannot be had.
[[nodiscard]] device_kind resolve_device(const std::string& name);

/// For cuda and cuda_emulated.
[[nodiscard]] const gpu::backend& backend_of(device_kind kind);

/// `octavo devices`: prints what this machine and this build can run on.
int devices_command(const std::vector<std::string>& arguments, std::ostream& out,
                    std::ostream& err);

}  // namespace octavo
