// KV pools on a device: see kv_pools.hpp.
#include "gpu/executor/kv_pools.hpp"

namespace octavo::gpu {
namespace {

std::size_t page_bytes_of(const model::model_config& config, int ranks, dtype type) {
  const std::int64_t elements =
      model::kv_heads_per_gpu(config, ranks) * kv_page_tokens * config.head_dim;
  return static_cast<std::size_t>(elements) * bytes_of(type);
}

}  // namespace

kv_pools::kv_pools(const model::model_config& config, int ranks, dtype type)
    : places_(model::make_kv_places(config, kv_page_tokens)),
      page_bytes_(page_bytes_of(config, ranks, type)) {}

void kv_pools::allocate(std::int32_t blocks) {
  release();
  for (std::size_t layer = 0; layer < places_.layers_per_block; ++layer) {
    keys_.emplace_back(static_cast<std::size_t>(blocks) * page_bytes_);
    values_.emplace_back(static_cast<std::size_t>(blocks) * page_bytes_);
  }
}

void kv_pools::release() {
  keys_.clear();
  values_.clear();
}

void kv_pools::fill_zero(stream& on) {
  for (auto* pools : {&keys_, &values_}) {
    for (device_array<std::byte>& pool : *pools) pool.fill_zero(on);
  }
}

void kv_pools::copy(stream& on, block_id from, block_id to) {
  for (auto* pools : {&keys_, &values_}) {
    for (device_array<std::byte>& pool : *pools) {
      copy_on_device(on, pool.data() + to.raw() * page_bytes_,
                     pool.data() + from.raw() * page_bytes_, page_bytes_);
    }
  }
}

std::int64_t kv_pools::block_bytes(const model::model_config& config, int ranks, dtype type) {
  const auto layers = model::make_kv_places(config, kv_page_tokens).layers_per_block;
  return static_cast<std::int64_t>(2 * layers * page_bytes_of(config, ranks, type));
}

}  // namespace octavo::gpu
