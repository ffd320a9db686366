// Tests only: what transformers computes for the tiny models in cpu/fixtures/models, and
// the comparison of an executor's logits with it.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "model/container/mapped_file.hpp"
#include "model/container/safetensors.hpp"
#include "model/quantized/scalar.hpp"
#include "tests/support/catch.hpp"

namespace octavo {

/// A prompt and the logits after each of its tokens.
struct expectation {
  std::vector<token_id> tokens;
  std::vector<float> logits;
};

inline std::string tiny_model_folder(const std::string& name) {
  return std::string(OCTAVO_SOURCE_DIR) + "/cpu/fixtures/models/" + name;
}

inline expectation expected_of(const std::string& name) {
  const model::mapped_file file{tiny_model_folder(name) + "/expected.safetensors"};
  expectation made;
  for (const auto& tensor : model::parse_safetensors(file.bytes(), file.path())) {
    for (std::size_t at = 0; at < tensor.bytes.size(); at += 4) {
      const std::byte* value = tensor.bytes.data() + at;
      if (tensor.name == "tokens") made.tokens.push_back(model::load<std::int32_t>(value));
      if (tensor.name == "logits") made.logits.push_back(model::load<float>(value));
    }
  }
  REQUIRE(!made.tokens.empty());
  return made;
}

/// Checks each position's logits: the length of the difference as a share of their
/// own, and that the likeliest token is the same wherever it leads by more than such
/// a difference could make up.
inline void check_logits(const std::vector<float>& got, const expectation& expected,
                         double tolerance) {
  REQUIRE(got.size() == expected.logits.size());
  const std::size_t width = got.size() / expected.tokens.size();
  double largest = 0;
  for (std::size_t from = 0; from < got.size(); from += width) {
    double difference = 0;
    double length = 0;
    for (std::size_t i = from; i < from + width; ++i) {
      difference += std::pow(static_cast<double>(got[i]) - expected.logits[i], 2);
      length += std::pow(static_cast<double>(expected.logits[i]), 2);
    }
    largest = std::max(largest, std::sqrt(difference / length));
    const auto begin = expected.logits.begin() + static_cast<std::ptrdiff_t>(from);
    const auto best = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(width));
    const auto mine = got.begin() + static_cast<std::ptrdiff_t>(from);
    const auto choice = std::max_element(mine, mine + static_cast<std::ptrdiff_t>(width)) - mine;
    CAPTURE(from / width);
    CHECK(*best - begin[choice] <= 1.5 * tolerance * std::sqrt(length));
  }
  CHECK(largest < tolerance);
}

}  // namespace octavo
