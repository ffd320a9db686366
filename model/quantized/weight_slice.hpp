// Some outputs or some inputs of a stored weight, as a weight of the same form:
// what a rank of a tensor-parallel group holds of it.
//
//   weight_slice part = slice_columns(matrix, share.mlp, "blk.0.ffn_down");
//   packed_weights(part.matrix, "blk.0.ffn_down");
//
// Every weight of a slice has exactly the value that it has in the whole. Bytes
// that lie together in the source are viewed, others copied: kernels repack, so
// a copy lives for a moment.
//
// A cut may fall inside a group of inputs that share a scale, where it leaves
// pieces of at least 32 inputs: groups of 128 cut at 64 become groups of 64, which
// repeat scales. It may not fall inside a word of codes or a GGUF block. Where
// inputs belong to groups in an order of their own (GPTQ with desc_act), a slice
// has the scales of all groups and its own inputs' part of the order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/quantized/weight_matrix.hpp"
#include "model/sharding.hpp"

namespace octavo::model {

/// Valid as long as the source's bytes are.
struct weight_slice {
  weight_matrix matrix;
  std::vector<std::vector<std::byte>> copies;
};

/// The outputs, or the inputs, in a range that lies inside the matrix. `name` is
/// for messages. Throws infeasible_error, arithmetic shown, for a cut that cannot
/// be.
[[nodiscard]] weight_slice slice_rows(const weight_matrix& from, index_range rows,
                                      const std::string& name);
[[nodiscard]] weight_slice slice_columns(const weight_matrix& from, index_range columns,
                                         const std::string& name);

}  // namespace octavo::model
