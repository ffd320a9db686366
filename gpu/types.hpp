// Types that launchers, the executor and their tests share: no CUDA header is needed to read them.
#pragma once

#include <cstddef>
#include <string_view>

namespace octavo::gpu {

/// Element types of device tensors.
enum class dtype { float16, bfloat16, float8_e4m3, float32 };

constexpr std::size_t bytes_of(dtype type) {
  switch (type) {
    case dtype::float16:
    case dtype::bfloat16:
      return 2;
    case dtype::float8_e4m3:
      return 1;
    case dtype::float32:
      return 4;
  }
  return 0;
}

constexpr std::string_view name_of(dtype type) {
  switch (type) {
    case dtype::float16:
      return "float16";
    case dtype::bfloat16:
      return "bfloat16";
    case dtype::float8_e4m3:
      return "float8_e4m3";
    case dtype::float32:
      return "float32";
  }
  return "unknown";
}

/// Tokens in one page of the KV cache.
inline constexpr int kv_page_tokens = 16;

/// Lanes of a warp.
inline constexpr int warp_lanes = 32;

}  // namespace octavo::gpu
