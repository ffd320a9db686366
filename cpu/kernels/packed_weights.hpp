// A linear layer's weights in the order that kernels read: repacked once from
// the stored form, still quantized, exact.
//
//   packed_weights w(matrix, "blk.0.attn_q.weight");
//   matmul(w, x, 0, w.row_tiles(), y, ldy);
//
// Memory: the file's bits plus at most 3 % for K formats, none for the others,
// and rows padded to a multiple of 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cpu/kernels/layout.hpp"
#include "cpu/kernels/pack_grouped.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::cpu {

class packed_weights {
 public:
  packed_weights() = default;

  /// Makes room for `matrix`; the caller packs. `name` is for messages. Throws
  /// input_error for stored forms that have no kernel.
  static packed_weights make_room(const model::weight_matrix& matrix, const std::string& name);

  /// Makes room and packs everything.
  packed_weights(const model::weight_matrix& matrix, const std::string& name);

  /// Packs the rows of the tiles [first, first + tiles) from the matrix that room
  /// was made for. Different tiles may be packed by different threads.
  void pack(const model::weight_matrix& matrix, std::size_t first, std::size_t tiles);

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  /// Tiles of 8 rows; the last may be partial.
  [[nodiscard]] std::size_t row_tiles() const { return (rows_ + tile_rows - 1) / tile_rows; }
  /// Width of the activation rows that kernels take: columns, or more where groups
  /// of inputs had to be filled up to whole blocks.
  [[nodiscard]] std::size_t inputs() const { return inputs_; }
  /// Column at each of the inputs() places, -1 for filling; empty where it is the
  /// place itself. For quantized_rows::quantize_ordered.
  [[nodiscard]] std::span<const std::int32_t> input_order() const { return groups_.order; }
  [[nodiscard]] layout kind() const { return kind_; }
  /// Do kernels take float rows rather than quantized ones?
  [[nodiscard]] bool takes_floats() const { return is_float(kind_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  /// Row `row` as floats, equal to model::dequantize_row of what was packed:
  /// embedding look-up in tied weights.
  void read_row(std::size_t row, std::span<float> out) const;

  [[nodiscard]] weights_view view() const;

 private:
  /// Kind, rows and columns; throws where there is no kernel.
  void describe(const model::weight_matrix& matrix, const std::string& name);
  void describe_small_floats(const model::scaled_matrix& stored, const std::string& name);
  [[nodiscard]] std::size_t blocks() const { return inputs_ / block_inputs; }
  [[nodiscard]] std::size_t scale_fields() const {
    return is_grouped(kind_) || kind_ == layout::f8_e4m3 ? groups_.groups : blocks();
  }
  void pack_floats(const model::block_matrix& stored, std::size_t tile);
  void pack_small_floats(const model::scaled_matrix& stored, std::size_t tile);
  void pack_blocks(const model::block_matrix& stored, std::size_t tile);

  struct release {
    void operator()(std::byte* memory) const;
  };

  layout kind_ = layout::f32;
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t inputs_ = 0;
  grouping groups_;
  std::size_t run_inputs_ = 0;
  std::size_t bytes_ = 0;
  std::size_t scales_at_ = 0;
  std::size_t supers_at_ = 0;
  std::unique_ptr<std::byte, release> memory_;
};

}  // namespace octavo::cpu
