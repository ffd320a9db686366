// Fractions of a turn: see rope_kv_write.hpp.
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "gpu/kernels/rope_kv_write/rope_kv_write.hpp"

namespace octavo::gpu {

std::vector<std::uint64_t> rope_turns(std::span<const double> frequencies) {
  std::vector<std::uint64_t> turns;
  for (const double frequency : frequencies) {
    const double turn = frequency / (2 * std::numbers::pi);
    if (!(turn >= 0 && turn < 1)) {
      throw input_error("rope: frequency is " + std::to_string(frequency) +
                        "; allowed is 0 to less than 2 pi");
    }
    turns.push_back(static_cast<std::uint64_t>(std::ldexp(turn, 64)));
  }
  return turns;
}

}  // namespace octavo::gpu
