// Devices: see devices.hpp.
#include "programs/octavo/devices.hpp"

#include <cstdio>
#include <ostream>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "cpu/kernels/isa.hpp"
#include "gpu/loader/loader.hpp"
#include "programs/octavo/command_line.hpp"

namespace octavo {
namespace {

/// The CUDA devices, or why there are none.
struct cuda_findings {
  std::vector<gpu::device_info> devices;
  std::string problem;
};

cuda_findings find_cuda() {
  const gpu::loaded_backend& loaded = gpu::cuda_backend();
  if (loaded.found == nullptr) return {{}, loaded.problem};
  try {
    auto devices = loaded.found->devices();
    if (devices.empty()) return {{}, "the driver knows no device"};
    return {std::move(devices), ""};
  } catch (const std::exception& problem) {
    return {{}, problem.what()};
  }
}

const gpu::backend* emulated_backend() {
#if defined(OCTAVO_EMULATES_GPU)
  return &gpu::this_backend();
#else
  return nullptr;
#endif
}

std::string line_of(const gpu::device_info& d) {
  char text[160];
  std::snprintf(text, sizeof text, "cuda:%d         %s, sm_%d%d, %d multiprocessors, %.0f GiB\n",
                d.index, d.name.c_str(), d.compute_major, d.compute_minor, d.multiprocessors,
                static_cast<double>(d.memory_bytes) / (1U << 30U));
  return text;
}

}  // namespace

device_kind resolve_device(const std::string& name) {
  if (name == "cpu") return device_kind::cpu;
  if (name == "cuda-emulated") {
    if (emulated_backend() != nullptr) return device_kind::cuda_emulated;
    throw input_error("--device: cuda-emulated is not in this build, which had no CUDA headers");
  }
  const cuda_findings cuda = find_cuda();
  if (name == "auto") return cuda.devices.empty() ? device_kind::cpu : device_kind::cuda;
  if (name != "cuda") {
    throw input_error("--device: " + name + " is not allowed; auto, cpu, cuda and " +
                      "cuda-emulated are");
  }
  if (!cuda.devices.empty()) return device_kind::cuda;
  throw input_error("--device: there is no CUDA device: " + cuda.problem);
}

const gpu::backend& backend_of(device_kind kind) {
  const gpu::backend* found =
      kind == device_kind::cuda_emulated ? emulated_backend() : gpu::cuda_backend().found;
  if (found == nullptr) throw input_error("--device: no such device");
  return *found;
}

int devices_command(const std::vector<std::string>& arguments, std::ostream& out,
                    std::ostream& err) {
  return run_command(err, [&] {
    CLI::App app{"Says what models can run on here.", "octavo devices"};
    if (const auto help = parse_flags(app, arguments)) {
      out << *help;
      return 0;
    }
    out << "cpu            " << std::thread::hardware_concurrency() << " cores, "
        << cpu::to_string(cpu::active_isa()) << " kernels\n";
    const cuda_findings cuda = find_cuda();
    for (const gpu::device_info& device : cuda.devices) out << line_of(device);
    if (cuda.devices.empty()) out << "cuda           none: " << cuda.problem << '\n';
    out << "cuda-emulated  "
        << (emulated_backend() != nullptr
                ? "the CUDA kernels on an emulator, for tests with tiny models"
                : "not in this build, which had no CUDA headers")
        << '\n';
    return 0;
  });
}

}  // namespace octavo
