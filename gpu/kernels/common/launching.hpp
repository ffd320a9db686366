// What launchers of row-wise kernels share: checks of their parameters, and the
// choice of template instances by element type and alignment. For .cu files.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/error.hpp"
#include "gpu/cuda.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// Throws input_error "<kernel>: <field> is <value>; allowed are <allowed>".
inline void require_field(bool fine, const char* kernel, const char* field,
                          const std::string& value, const char* allowed) {
  if (fine) return;
  throw input_error(std::string(kernel) + ": " + field + " is " + value + "; allowed are " +
                    allowed);
}

inline void require_pointer(const void* pointer, const char* kernel, const char* field) {
  require_field(pointer != nullptr, kernel, field, "null", "addresses on the device");
}

inline void require_range(std::int64_t value, std::int64_t low, std::int64_t high,
                          const char* kernel, const char* field) {
  if (value >= low && value <= high) return;
  const std::string allowed = std::to_string(low) + " to " + std::to_string(high);
  require_field(false, kernel, field, std::to_string(value), allowed.c_str());
}

/// Names a type as a value.
template <class T>
struct type_tag {
  using type = T;
};

/// Calls body(type_tag<T>) with the T of a 16-bit `type`; input_error for others.
template <class Body>
void with_half_type(dtype type, const char* kernel, const char* field, Body&& body) {
  switch (type) {
    case dtype::float16:
      return body(type_tag<__half>());
    case dtype::bfloat16:
      return body(type_tag<__nv_bfloat16>());
    default:
      break;
  }
  require_field(false, kernel, field, std::string(name_of(type)), "float16 and bfloat16");
}

/// As with_half_type, and float.
template <class Body>
void with_float_type(dtype type, const char* kernel, const char* field, Body&& body) {
  if (type == dtype::float32) return body(type_tag<float>());
  switch (type) {
    case dtype::float16:
      return body(type_tag<__half>());
    case dtype::bfloat16:
      return body(type_tag<__nv_bfloat16>());
    default:
      break;
  }
  require_field(false, kernel, field, std::string(name_of(type)), "float16, bfloat16 and float32");
}

/// Are all addresses multiples of `bytes`? Null is.
inline bool aligned_to(std::size_t bytes, std::initializer_list<const void*> addresses) {
  for (const void* address : addresses) {
    if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) return false;
  }
  return true;
}

/// Threads for a row of `items` pieces of work: whole warps, at most `most`.
inline unsigned threads_for(int items, int most) {
  const int warps = (items + warp_lanes - 1) / warp_lanes;
  const int threads = warps * warp_lanes;
  return static_cast<unsigned>(threads < most ? threads : most);
}

}  // namespace octavo::gpu
