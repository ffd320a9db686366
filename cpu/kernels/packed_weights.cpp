// Storage of packed weights, and the copy of float weights. Integer blocks are
// taken apart in pack_block.cpp.
#include "cpu/kernels/packed_weights.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "core/error.hpp"
#include "cpu/kernels/pack_block.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::cpu {
namespace {

constexpr std::size_t alignment = 64;

std::optional<layout> layout_of(model::element_type type) {
  using model::element_type;
  switch (type) {
    case element_type::f32:
      return layout::f32;
    case element_type::f16:
      return layout::f16;
    case element_type::bf16:
      return layout::bf16;
    case element_type::q8_0:
      return layout::u8_scale;
    case element_type::q4_0:
      return layout::u4_scale;
    case element_type::q4_1:
      return layout::u4_scale_min;
    case element_type::q5_0:
      return layout::u5_scale;
    case element_type::q5_1:
      return layout::u5_scale_min;
    case element_type::q4_k:
      return layout::u4_k;
    case element_type::q5_k:
      return layout::u5_k;
    case element_type::q6_k:
      return layout::u6_k;
    default:
      return std::nullopt;
  }
}

const model::block_matrix& blocks_of(const model::weight_matrix& matrix, const std::string& name) {
  if (const auto* blocks = std::get_if<model::block_matrix>(&matrix)) return *blocks;
  throw input_error(name + ": the CPU kernels take plain floats and GGUF blocks only");
}

std::size_t float_size(layout kind) {
  return kind == layout::f32 ? 4 : 2;
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

void packed_weights::release::operator()(std::byte* memory) const {
  std::free(memory);
}

packed_weights packed_weights::make_room(const model::weight_matrix& matrix,
                                         const std::string& name) {
  const model::block_matrix& stored = blocks_of(matrix, name);
  const auto kind = layout_of(stored.type);
  if (!kind) {
    throw input_error(name + ": no CPU kernel for type " +
                      std::string(model::info(stored.type).name) +
                      "; there are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K");
  }
  packed_weights made;
  made.kind_ = *kind;
  made.rows_ = static_cast<std::size_t>(stored.rows);
  made.columns_ = static_cast<std::size_t>(stored.columns);
  const std::size_t tiles = made.row_tiles();
  const std::size_t blocks = made.columns_ / block_inputs;
  const layout_bytes sizes = bytes_of(*kind);
  const std::size_t codes = is_float(*kind)
                                ? tiles * made.columns_ * tile_rows * float_size(*kind)
                                : tiles * blocks * sizes.codes_per_block;
  made.scales_at_ = aligned(codes);
  made.supers_at_ = made.scales_at_ + aligned(tiles * blocks * sizes.scales_per_block);
  made.bytes_ = made.supers_at_ + aligned(tiles * (blocks / super_blocks) * sizes.supers);
  made.memory_.reset(static_cast<std::byte*>(
      std::aligned_alloc(alignment, std::max(made.bytes_, alignment))));
  if (made.memory_ == nullptr) throw std::bad_alloc();
  return made;
}

packed_weights::packed_weights(const model::weight_matrix& matrix, const std::string& name)
    : packed_weights(make_room(matrix, name)) {
  pack(matrix, 0, row_tiles());
}

void packed_weights::pack(const model::weight_matrix& matrix, std::size_t first,
                          std::size_t tiles) {
  const auto& stored = std::get<model::block_matrix>(matrix);
  assert(static_cast<std::size_t>(stored.rows) == rows_ && first + tiles <= row_tiles());
  const auto row_bytes = static_cast<std::size_t>(model::bytes_of(stored.type, stored.columns));
  if (takes_floats()) {
    const std::size_t size = float_size(kind_);
    for (std::size_t tile = first; tile < first + tiles; ++tile) {
      std::byte* out = memory_.get() + tile * columns_ * tile_rows * size;
      for (std::size_t r = 0; r < tile_rows; ++r) {
        const std::size_t row = tile * tile_rows + r;
        for (std::size_t k = 0; k < columns_; ++k) {
          std::byte* to = out + (k * tile_rows + r) * size;
          if (row < rows_) {
            std::memcpy(to, stored.bytes.data() + row * row_bytes + k * size, size);
          } else {
            std::memset(to, 0, size);
          }
        }
      }
    }
    return;
  }
  const layout_bytes sizes = bytes_of(kind_);
  const std::size_t blocks = columns_ / block_inputs;
  for (std::size_t tile = first; tile < first + tiles; ++tile) {
    for (std::size_t r = 0; r < tile_rows; ++r) {
      const std::size_t row = tile * tile_rows + r;
      const std::byte* from = row < rows_ ? stored.bytes.data() + row * row_bytes : nullptr;
      const packed_row to{
          memory_.get() + tile * blocks * sizes.codes_per_block,
          memory_.get() + scales_at_ + tile * blocks * sizes.scales_per_block,
          memory_.get() + supers_at_ + tile * (blocks / super_blocks) * sizes.supers, r};
      pack_row(kind_, from, blocks, to);
    }
  }
}

void packed_weights::read_row(std::size_t row, std::span<float> out) const {
  assert(row < rows_ && out.size() == columns_);
  const std::size_t tile = row / tile_rows;
  const std::size_t r = row % tile_rows;
  if (!takes_floats()) {
    unpack_row(view(), tile, r, out.data());
    return;
  }
  const std::size_t size = float_size(kind_);
  const std::byte* at = memory_.get() + (tile * columns_ * tile_rows + r) * size;
  for (std::size_t k = 0; k < columns_; ++k, at += tile_rows * size) {
    if (kind_ == layout::f32) out[k] = model::load<float>(at);
    if (kind_ == layout::f16) out[k] = model::half_to_float(model::load<std::uint16_t>(at));
    if (kind_ == layout::bf16) out[k] = model::bfloat_to_float(model::load<std::uint16_t>(at));
  }
}

weights_view packed_weights::view() const {
  return {kind_,
          rows_,
          columns_,
          columns_ / block_inputs,
          memory_.get(),
          memory_.get() + scales_at_,
          memory_.get() + supers_at_};
}

}  // namespace octavo::cpu
