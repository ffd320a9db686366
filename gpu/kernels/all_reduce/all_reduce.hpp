// Sums of the ranks' parts of rows, over memory that all ranks reach, together with
// what follows each such sum in a decoder: the residual stream and its norm.
//
// One-shot: every rank reads all parts. Two-shot: each rank sums a share of the rows,
// and all read the sums; less traffic, one more wait. Either way a sum is taken in
// float32 in the order of the ranks and then rounded to the exchanged type, so that
// all ranks get the same bits whichever way was taken.
#pragma once

#include <cstddef>

#include "gpu/kernels/all_reduce/peer_group.hpp"
#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

enum class all_reduce_algorithm { automatic, one_shot, two_shot };

/// With x the sum over ranks of input[i], for each row i:
///   with a residual:   residual[i] += x, or norm(x) * input_weight where that is given;
///                      output[i] = norm(residual[i]) * weight
///   without:           output[i] = x
/// The norm is that of rms_norm.hpp.
struct all_reduce_params {
  all_reduce_algorithm algorithm = all_reduce_algorithm::automatic;
  dtype type = dtype::bfloat16;  ///< float16, bfloat16 or float32: exchanged
  int rows = 0;
  int width = 0;                ///< 1 to norm_width_max
  const void* input = nullptr;  ///< [rows, width], this rank's part, of any memory
  float* residual = nullptr;    ///< [rows, width], or null; the same on all ranks
  float epsilon = 0;
  const void* input_weight = nullptr;   ///< [width], or null
  const void* weight = nullptr;         ///< [width]
  dtype weight_type = dtype::float32;   ///< float32 or output_type
  dtype output_type = dtype::bfloat16;  ///< `type`; of a float32 exchange, any of the three
  void* output = nullptr;               ///< [rows, width]; null only with a residual: just the sum
};

/// Throws input_error naming the field that cannot be used.
void all_reduce(const peer_group& group, const all_reduce_params& params, stream& s);

/// What `automatic` takes for a payload: the crossover of latency and traffic over
/// NVLink, as vLLM's custom all-reduce has it.
all_reduce_algorithm choose_algorithm(int ranks, std::size_t bytes);

}  // namespace octavo::gpu
