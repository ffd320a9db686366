// Writing pages and entering the attention kernels.
#include "cpu/kernels/attention.hpp"

#include <cassert>
#include <string>

#include "core/error.hpp"
#include "cpu/kernels/layout.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::cpu {

void write_kv(const kv_page& page, std::size_t kv_head, std::size_t slot, std::size_t head_dim,
              const float* key, const float* value) {
  assert(slot < page_tokens);
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
