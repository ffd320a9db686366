// Opening libraries: see vendor_library.hpp.
#include "gpu/runtime/vendor_library.hpp"

#include <dlfcn.h>

namespace octavo::gpu {

vendor_library::vendor_library(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      problem_.clear();
      return;
    }
    problem_ += (problem_.empty() ? "" : "; ") + std::string(dlerror());
  }
}

void* vendor_library::address_of(const char* name) {
  if (handle_ == nullptr) return nullptr;
  void* found = dlsym(handle_, name);
  if (found == nullptr && problem_.empty()) problem_ = dlerror();
  return found;
}

}  // namespace octavo::gpu
