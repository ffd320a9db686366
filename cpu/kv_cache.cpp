// The KV cache in main memory: see kv_cache.hpp.
#include "cpu/kv_cache.hpp"

#include <sys/mman.h>

#include <cstring>
#include <string>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"

namespace octavo::cpu {

namespace {

model::kv_layout layout_of(const model::model_config& config) {
  return model::make_kv_layout(config, model::kv_dtype::fp16, 1, kv_cache::block_size);
}

}  // namespace

kv_cache::mapping::mapping(std::size_t size) : bytes(size) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw infeasible_error("no room for a KV cache of " + std::to_string(bytes) + " bytes");
  }
  data = static_cast<std::uint16_t*>(memory);
}

kv_cache::mapping::~mapping() {
  munmap(data, bytes);
}

kv_cache::kv_cache(const model::model_config& config, std::int32_t blocks)
    : layer_elements_(static_cast<std::size_t>(config.kv_heads * config.head_dim * block_size)),
      block_elements_(static_cast<std::size_t>(layout_of(config).block_bytes) / 2),
      pool_(block_elements_ * 2 * static_cast<std::size_t>(blocks)) {
  const model::kv_layout layout = layout_of(config);
  const std::size_t unit_layers = block_elements_ / (2 * layer_elements_);
  std::vector<std::size_t> seen(layout.groups.size());
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const bool slides = !config.slides.empty() && config.slides[static_cast<std::size_t>(layer)];
    place p;
    for (std::size_t g = 0; g < layout.groups.size(); ++g) {
      if ((layout.groups[g].window > 0) == slides) p.group = g;
    }
    const std::size_t number = seen[p.group]++;
    p.blocks = static_cast<std::size_t>(layout.groups[p.group].pool_blocks);
    p.block = number / unit_layers;
    p.layer_in_block = number % unit_layers;
    places_.push_back(p);
  }
}

void kv_cache::copy(block_id from, block_id to) {
  std::memcpy(pool_.data + to.raw() * block_elements_, pool_.data + from.raw() * block_elements_,
              block_elements_ * sizeof(std::uint16_t));
}

}  // namespace octavo::cpu
