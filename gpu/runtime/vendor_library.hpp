// Libraries of the vendor that may or may not be installed, opened when first needed:
// so that the executor loads where they are not. Part of the device's flavour only.
#pragma once

#include <string>
#include <vector>

namespace octavo::gpu {

class vendor_library {
 public:
  /// Opens the first of `names` that is there, as dlopen looks for them; it stays open
  /// while the program runs.
  explicit vendor_library(const std::vector<std::string>& names);

  /// Why it cannot be used; empty where it can.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// Sets `function` to the one exported as `name`; a problem where there is none.
  template <class F>
  void find(F*& function, const char* name) {
    function = reinterpret_cast<F*>(address_of(name));
  }

 private:
  void* address_of(const char* name);

  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace octavo::gpu
