// For tests of this folder: bounds as a server of a small model has them, and how refusals
// are told apart.
#pragma once

#include <stdexcept>
#include <string>

#include "web/gateway/api/api_error.hpp"
#include "web/gateway/api/limits.hpp"

namespace octavo::api {

inline limits test_bounds() {
  limits bounds;
  bounds.served_model_names = {"tiny", "tiny-too"};
  bounds.max_model_len = token_count{64};
  bounds.kv_capacity = token_count{1024};
  bounds.vocab_size = 46;
  bounds.samples_max = 8;
  bounds.sequences_max = 32;
  return bounds;
}

/// The error that `call` throws; throws std::logic_error where it throws none.
template <class Call>
api_error error_of(const Call& call) {
  try {
    call();
  } catch (const api_error& problem) {
    return problem;
  }
  throw std::logic_error("nothing was refused");
}

}  // namespace octavo::api
