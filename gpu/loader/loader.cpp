// Loading the library for CUDA devices: see loader.hpp.
#include "gpu/loader/loader.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace octavo::gpu {
namespace {

std::string library_beside_program() {
  std::error_code problem;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
  return (program.parent_path() / "liboctavo_cuda.so").string();
}

}  // namespace

loaded_backend load_backend(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return {nullptr, path + " is not there: it is built where nvcc is found"};
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, dlerror()};
  using entry = const backend& (*)();
  const auto open = reinterpret_cast<entry>(dlsym(library, backend_symbol));
  if (open == nullptr) return {nullptr, path + " is no library of Octavo"};
  const backend& found = open();
  if (std::string_view{found.version} != backend_version) {
    return {nullptr, path + " is of another version of Octavo: " + found.version};
  }
  return {&found, ""};
}

const loaded_backend& cuda_backend() {
  static const loaded_backend loaded = [] {
    const char* named = std::getenv("OCTAVO_CUDA_LIBRARY");
    return load_backend(named != nullptr ? named : library_beside_program());
  }();
  return loaded;
}

}  // namespace octavo::gpu
