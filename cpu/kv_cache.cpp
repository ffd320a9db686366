// The KV cache in main memory: see kv_cache.hpp.
#include "cpu/kv_cache.hpp"

#include <sys/mman.h>

#include <cstring>
#include <string>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"

namespace octavo::cpu {

void kv_cache::unmap::operator()(std::uint16_t* pool) const { munmap(pool, bytes); }

kv_cache::kv_cache(const model::model_config& config, std::int32_t blocks,
                   std::int32_t block_size)
    : block_size_(block_size) {
  const model::kv_layout layout =
      model::make_kv_layout(config, model::kv_dtype::fp16, 1, block_size);
  layer_elements_ =
      static_cast<std::size_t>(config.kv_heads * config.head_dim) * static_cast<std::size_t>(block_size);
  block_elements_ = static_cast<std::size_t>(layout.block_bytes) / sizeof(std::uint16_t);
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
  bytes_ = block_elements_ * sizeof(std::uint16_t) * static_cast<std::size_t>(blocks);
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw infeasible_error("no memory for " + std::to_string(blocks) + " KV blocks of " +
                           std::to_string(layout.block_bytes) + " bytes");
  }
  pool_ = {static_cast<std::uint16_t*>(memory), unmap{bytes_}};
}

void kv_cache::copy(block_id from, block_id to) {
  std::memcpy(pool_.get() + to.raw() * block_elements_,
              pool_.get() + from.raw() * block_elements_,
              block_elements_ * sizeof(std::uint16_t));
}

}  // namespace octavo::cpu
