// Rotary position embedding: the angles of one kind of layer.
//
// Su et al., "RoFormer" (arXiv 2104.09864); linear scaling, Llama 3's ramp as in
// its reference implementation, YaRN (Peng et al., arXiv 2309.00071).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.hpp"

namespace octavo::model {

class rope_angles {
 public:
  rope_angles() = default;
  /// For the layers that slide (`local`) or for all others. Throws
  /// infeasible_error for a scaling that is not known.
  rope_angles(const model_config& config, bool local);

  /// Elements of a head that turn: twice the number of pairs.
  [[nodiscard]] std::size_t dimensions() const { return 2 * frequencies_.size(); }
  /// Cosine and sine of each pair at `position`, scaled as the model asks.
  void at(std::int64_t position, std::span<float> cosines, std::span<float> sines) const;

 private:
  std::vector<double> frequencies_;
  double magnitude_ = 1;
};

}  // namespace octavo::model
