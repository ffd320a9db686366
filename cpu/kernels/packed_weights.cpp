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

std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

void packed_weights::release::operator()(std::byte* memory) const {
  std::free(memory);
}

void packed_weights::describe_small_floats(const model::scaled_matrix& stored,
                                           const std::string& name) {
  kind_ = layout::f8_e4m3;
  run_inputs_ = std::min(static_cast<std::size_t>(stored.block_columns), columns_);
  groups_.groups = (columns_ + run_inputs_ - 1) / run_inputs_;
  if (groups_.groups > 1 && run_inputs_ % 2 != 0) {
    throw input_error(name + ": scales for blocks of " + std::to_string(run_inputs_) +
                      " columns; the CPU kernels take even numbers");
  }
}

void packed_weights::describe(const model::weight_matrix& matrix, const std::string& name) {
  rows_ = static_cast<std::size_t>(model::rows_of(matrix));
  columns_ = static_cast<std::size_t>(model::columns_of(matrix));
  inputs_ = columns_;
  if (const auto* stored = std::get_if<model::block_matrix>(&matrix)) {
    const auto kind = layout_of(stored->type);
    if (!kind) {
      throw input_error(name + ": no CPU kernel for type " +
                        std::string(model::info(stored->type).name) +
                        "; there are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, "
                        "Q6_K");
    }
    kind_ = *kind;
    return;
  }
  const auto* scaled = std::get_if<model::scaled_matrix>(&matrix);
  if (scaled != nullptr && scaled->type == model::element_type::f8_e4m3) {
    return describe_small_floats(*scaled, name);
  }
  if (scaled != nullptr && scaled->type != model::element_type::i8) {
    throw input_error(name + ": no CPU kernel for scaled " +
                      std::string(model::info(scaled->type).name) + "; there are I8 and F8_E4M3");
  }
  groups_ = group_inputs(matrix);
  kind_ = groups_.kind;
  inputs_ = groups_.block_groups.size() * block_inputs;
}

packed_weights packed_weights::make_room(const model::weight_matrix& matrix,
                                         const std::string& name) {
  packed_weights made;
  made.describe(matrix, name);
  const std::size_t tiles = made.row_tiles();
  const layout_bytes sizes = bytes_of(made.kind_);
  const std::size_t codes = is_float(made.kind_)
                                ? tiles * made.columns_ * tile_rows * float_bytes(made.kind_)
                                : tiles * made.blocks() * sizes.codes_per_block;
  made.scales_at_ = aligned(codes);
  const std::size_t scale_bytes =
      made.kind_ == layout::f8_e4m3 ? 4 * tile_rows : sizes.scales_per_block;
  made.supers_at_ = made.scales_at_ + aligned(tiles * made.scale_fields() * scale_bytes);
  made.bytes_ = made.supers_at_ + aligned(tiles * (made.blocks() / super_blocks) * sizes.supers);
  made.memory_.reset(
      static_cast<std::byte*>(std::aligned_alloc(alignment, std::max(made.bytes_, alignment))));
  if (made.memory_ == nullptr) throw std::bad_alloc();
  return made;
}

packed_weights::packed_weights(const model::weight_matrix& matrix, const std::string& name)
    : packed_weights(make_room(matrix, name)) {
  pack(matrix, 0, row_tiles());
}

void packed_weights::pack_floats(const model::block_matrix& stored, std::size_t tile) {
  const std::size_t size = float_bytes(kind_);
  std::byte* out = memory_.get() + tile * columns_ * tile_rows * size;
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const std::size_t row = tile * tile_rows + r;
    for (std::size_t k = 0; k < columns_; ++k) {
      std::byte* to = out + (k * tile_rows + r) * size;
      if (row < rows_) {
        std::memcpy(to, stored.bytes.data() + (row * columns_ + k) * size, size);
      } else {
        std::memset(to, 0, size);
      }
    }
  }
}

void packed_weights::pack_small_floats(const model::scaled_matrix& stored, std::size_t tile) {
  std::byte* out = memory_.get() + tile * columns_ * tile_rows;
  std::byte* scales = memory_.get() + scales_at_ + tile * groups_.groups * 4 * tile_rows;
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const std::size_t row = tile * tile_rows + r;
    const bool real = row < rows_;
    for (std::size_t k = 0; k < columns_; ++k) {
      out[k * tile_rows + r] = real ? stored.codes[row * columns_ + k] : std::byte{0};
    }
    for (std::size_t g = 0; g < groups_.groups; ++g) {
      const std::size_t block = row / static_cast<std::size_t>(stored.block_rows);
      const float scale =
          real ? stored.scales.at(static_cast<std::int64_t>(block * groups_.groups + g)) : 0.0F;
      std::memcpy(scales + (g * tile_rows + r) * 4, &scale, 4);
    }
  }
}

void packed_weights::pack_blocks(const model::block_matrix& stored, std::size_t tile) {
  const layout_bytes sizes = bytes_of(kind_);
  const auto row_bytes = static_cast<std::size_t>(model::bytes_of(stored.type, stored.columns));
  for (std::size_t r = 0; r < tile_rows; ++r) {
    const std::size_t row = tile * tile_rows + r;
    const std::byte* from = row < rows_ ? stored.bytes.data() + row * row_bytes : nullptr;
    const packed_row to{
        memory_.get() + tile * blocks() * sizes.codes_per_block,
        memory_.get() + scales_at_ + tile * blocks() * sizes.scales_per_block,
        memory_.get() + supers_at_ + tile * (blocks() / super_blocks) * sizes.supers, r};
    pack_row(kind_, from, blocks(), to);
  }
}

void packed_weights::pack(const model::weight_matrix& matrix, std::size_t first,
                          std::size_t tiles) {
  assert(static_cast<std::size_t>(model::rows_of(matrix)) == rows_);
  assert(first + tiles <= row_tiles());
  const layout_bytes sizes = bytes_of(kind_);
  for (std::size_t tile = first; tile < first + tiles; ++tile) {
    if (is_grouped(kind_)) {
      pack_grouped_tile(
          matrix, groups_, tile, memory_.get() + tile * blocks() * sizes.codes_per_block,
          memory_.get() + scales_at_ + tile * groups_.groups * sizes.scales_per_block);
    } else if (kind_ == layout::f8_e4m3) {
      pack_small_floats(std::get<model::scaled_matrix>(matrix), tile);
    } else if (takes_floats()) {
      pack_floats(std::get<model::block_matrix>(matrix), tile);
    } else {
      pack_blocks(std::get<model::block_matrix>(matrix), tile);
    }
  }
}

void packed_weights::read_row(std::size_t row, std::span<float> out) const {
  assert(row < rows_ && out.size() == columns_);
  const std::size_t tile = row / tile_rows;
  const std::size_t r = row % tile_rows;
  if (!takes_floats()) {
    if (input_order().empty()) return unpack_row(view(), tile, r, out.data());
    std::vector<float> ordered(inputs_);
    unpack_row(view(), tile, r, ordered.data());
    for (std::size_t i = 0; i < inputs_; ++i) {
      if (groups_.order[i] >= 0) out[groups_.order[i]] = ordered[i];
    }
    return;
  }
  const std::size_t size = float_bytes(kind_);
  const std::byte* at = memory_.get() + (tile * columns_ * tile_rows + r) * size;
  for (std::size_t k = 0; k < columns_; ++k, at += tile_rows * size) {
    if (kind_ == layout::f32) out[k] = model::load<float>(at);
    if (kind_ == layout::f16) out[k] = model::half_to_float(model::load<std::uint16_t>(at));
    if (kind_ == layout::f8_e4m3) {
      const std::size_t group = tile * groups_.groups + k / run_inputs_;
      out[k] = model::e4m3_to_float(model::load<std::uint8_t>(at)) *
               model::load<float>(memory_.get() + scales_at_ + (group * tile_rows + r) * 4);
    }
    if (kind_ == layout::bf16) out[k] = model::bfloat_to_float(model::load<std::uint16_t>(at));
  }
}

weights_view packed_weights::view() const {
  return {.kind = kind_,
          .rows = rows_,
          .inputs = inputs_,
          .blocks = blocks(),
          .codes = memory_.get(),
          .scales = memory_.get() + scales_at_,
          .supers = memory_.get() + supers_at_,
          .groups = groups_.groups,
          .run_inputs = run_inputs_,
          .block_groups = groups_.block_groups.data()};
}

}  // namespace octavo::cpu
