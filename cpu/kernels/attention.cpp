// Writing pages and entering the attention kernels.
#include "cpu/kernels/attention.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "cpu/kernels/layout.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::cpu {
namespace {

/// One vector's codes, from `first` on and `apart` bytes from one to the next, and scale.
void write_codes(const float* values, std::size_t head_dim, std::size_t apart, std::uint16_t* scale,
                 std::uint16_t* page, std::size_t first) {
  auto* codes = reinterpret_cast<std::int8_t*>(page) + first;
  float largest = 0;
  bool finite = true;
  for (std::size_t d = 0; d < head_dim; ++d) {
    finite = finite && std::isfinite(values[d]);
    largest = std::max(largest, std::fabs(values[d]));
  }
  *scale = model::float_to_half(finite ? largest / 127 : std::nanf(""));
  // As it is kept, so that its own rounding adds no error.
  const float step = model::half_to_float(*scale);
  const bool usable = step > 0 && std::isfinite(step);
  for (std::size_t d = 0; d < head_dim; ++d) {
    const float code = usable ? std::nearbyint(values[d] / step) : 0.0F;
    codes[d * apart] = static_cast<std::int8_t>(std::clamp(code, -127.0F, 127.0F));
  }
}

}  // namespace

void write_kv(const kv_page& page, std::size_t kv_head, std::size_t slot, std::size_t head_dim,
              const float* key, const float* value) {
  assert(slot < page_tokens);
  if (page.key_scales != nullptr) {
    const std::size_t scale = kv_head * page_tokens + slot;
    const std::size_t head = kv_head * page_tokens * head_dim;
    write_codes(key, head_dim, page_tokens, page.key_scales + scale, page.keys, head + slot);
    write_codes(value, head_dim, 1, page.value_scales + scale, page.values, head + slot * head_dim);
    return;
  }
  std::uint16_t* keys = page.keys + kv_head * page_tokens * head_dim + slot;
  std::uint16_t* values = page.values + (kv_head * page_tokens + slot) * head_dim;
  for (std::size_t d = 0; d < head_dim; ++d) {
    keys[d * page_tokens] = model::float_to_half(key[d]);
    values[d] = model::float_to_half(value[d]);
  }
}

void check_attention_shape(const attention_shape& shape) {
  if (shape.head_dim > 0 && shape.head_dim % 8 == 0 && shape.head_dim <= head_dim_max) return;
  throw input_error("head_dim is " + std::to_string(shape.head_dim) +
                    "; the CPU kernels take multiples of 8 up to " + std::to_string(head_dim_max));
}

void attend(const attention_shape& shape, const attention_work& work, const kernel_table& kernels) {
  kernels.attend(shape, work);
}

}  // namespace octavo::cpu
