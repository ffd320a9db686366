// The shares of a tensor-parallel group: see sharding.hpp.
#include "model/sharding.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include "core/error.hpp"

namespace octavo::model {
namespace {

index_range even_part(std::int64_t total, int parts, int which) {
  return {total / parts * which, total / parts * (which + 1)};
}

}  // namespace

std::int64_t vocabulary_per_rank(const model_config& config, int tp) {
  return (config.vocab_size + tp - 1) / tp;
}

rank_share share_of(const model_config& config, int tp, int rank) {
  check_tensor_parallel(config, tp);
  assert(rank >= 0 && rank < tp);
  const std::int64_t tokens = vocabulary_per_rank(config, tp);
  if (tokens * (tp - 1) >= config.vocab_size) {
    throw infeasible_error(config.name + ": a vocabulary of " + std::to_string(config.vocab_size) +
                           " tokens, " + std::to_string(tokens) +
                           " to each rank, leaves none to the last of tensor parallel size " +
                           std::to_string(tp));
  }
  rank_share share;
  share.query = even_part(config.query_size(), tp, rank);
  share.mlp = even_part(config.intermediate_size, tp, rank);
  const std::int64_t kv_heads = kv_heads_per_gpu(config, tp);
  const std::int64_t first = rank * config.kv_heads / tp;
  share.kv = {first * config.head_dim, (first + kv_heads) * config.head_dim};
  share.vocabulary = {tokens * rank, std::min(tokens * (rank + 1), config.vocab_size)};
  return share;
}

std::vector<float> slice_vector(const std::vector<float>& from, index_range range) {
  if (from.empty()) return {};
  return {from.begin() + range.begin, from.begin() + range.end};
}

}  // namespace octavo::model
