// The KV cache in main memory: see kv_cache.hpp.
#include "cpu/kv_cache.hpp"

#include <sys/mman.h>

#include <cstring>
#include <string>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"

namespace octavo::cpu {

namespace {

model::kv_layout layout_of(const model::model_config& config, int ranks, model::kv_dtype dtype) {
  if (dtype == model::kv_dtype::fp8) {
    throw input_error("kv_dtype is fp8; the CPU keeps keys and values in fp16 or int8");
  }
  return model::make_kv_layout(config, dtype, ranks, kv_cache::block_size);
}

/// Heads of K (or V) of one layer in one block, each of 16 tokens.
std::size_t heads_in_block(const model::model_config& config, int ranks) {
  return static_cast<std::size_t>(model::kv_heads_per_gpu(config, ranks) * kv_cache::block_size);
}

}  // namespace

kv_cache::mapping::mapping(std::size_t size) : bytes(size) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw infeasible_error("no room for a KV cache of " + std::to_string(bytes) + " bytes");
  }
  data = static_cast<std::byte*>(memory);
}

kv_cache::mapping::~mapping() {
  munmap(data, bytes);
}

kv_cache::kv_cache(const model::model_config& config, std::int32_t blocks, int ranks,
                   model::kv_dtype dtype)
    : places_(model::make_kv_places(config, block_size).layers),
      ranks_(static_cast<std::size_t>(ranks)),
      blocks_(static_cast<std::size_t>(blocks)),
      part_bytes_(heads_in_block(config, ranks) *
                  static_cast<std::size_t>(config.head_dim * model::kv_element_bytes(dtype))),
      scale_bytes_(heads_in_block(config, ranks) *
                   static_cast<std::size_t>(model::kv_scale_bytes(dtype))),
      block_bytes_(static_cast<std::size_t>(layout_of(config, ranks, dtype).block_bytes)),
      pool_(block_bytes_ * blocks_ * ranks_) {}

void kv_cache::copy(block_id from, block_id to) {
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    std::byte* pool = pool_.data + rank * blocks_ * block_bytes_;
    std::memcpy(pool + to.raw() * block_bytes_, pool + from.raw() * block_bytes_, block_bytes_);
  }
}

}  // namespace octavo::cpu
