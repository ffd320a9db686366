// Tables of measured times on rectangular grids, and linear interpolation in
// them (in linear space: measured attention is linear in sequences x context,
// and logarithms bend that).
//
// Between grid points: multilinear. Below an axis' first point: its value at
// that point, because small operations cost their floor. Beyond the last point:
// the straight line through the last point and the one nearest to half its
// coordinate (neighbours in a fine grid differ by little more than noise).
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace octavo::sim {

/// Two points of an axis and how far from the first to the second to go.
struct axis_position {
  std::size_t low = 0;
  std::size_t high = 0;
  /// 0..1 inside the grid, above 1 beyond its end.
  double weight = 0;
};

/// Increasing coordinates.
class grid_axis {
 public:
  grid_axis() = default;
  /// `points` must be strictly increasing and not empty.
  explicit grid_axis(std::vector<double> points);

  [[nodiscard]] axis_position find(double x) const;
  [[nodiscard]] const std::vector<double>& points() const { return points_; }
  [[nodiscard]] std::size_t size() const { return points_.size(); }

 private:
  std::vector<double> points_;
  /// Start of the line that continues beyond the last point.
  std::size_t anchor_ = 0;
};

/// Values on the product of `N` axes, the last axis varying fastest.
template <std::size_t N>
class grid {
 public:
  grid() = default;
  grid(std::array<grid_axis, N> axes, std::vector<double> values)
      : axes_(std::move(axes)), values_(std::move(values)) {}

  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] const std::array<grid_axis, N>& axes() const { return axes_; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

  /// Interpolated value, never negative. The grid must not be empty.
  [[nodiscard]] double at(const std::array<double, N>& x) const {
    std::array<axis_position, N> where;
    for (std::size_t d = 0; d < N; ++d) where[d] = axes_[d].find(x[d]);
    const double value = blend<0>(where, 0);
    return value > 0 ? value : 0;
  }

 private:
  template <std::size_t D>
  [[nodiscard]] double blend(const std::array<axis_position, N>& where, std::size_t offset) const {
    if constexpr (D == N) {
      return values_[offset];
    } else {
      const axis_position& p = where[D];
      const std::size_t row = offset * axes_[D].size();
      const double low = blend<D + 1>(where, row + p.low);
      if (p.weight == 0) return low;
      return low + p.weight * (blend<D + 1>(where, row + p.high) - low);
    }
  }

  std::array<grid_axis, N> axes_;
  std::vector<double> values_;
};

/// A measurement at a point of N coordinates.
template <std::size_t N>
struct measured_point {
  std::array<double, N> x;
  double value = 0;
};

/// What make_grid made.
template <std::size_t N>
struct complete_grid {
  grid<N> table;
  /// Grid points that were not measured but interpolated between measured ones.
  std::size_t points_filled = 0;
  /// Measurements whose coordinates could not be completed.
  std::size_t points_dropped = 0;
};

/// A complete grid out of measurements that may not be one (two sweeps of different
/// steps, corners that do not fit a device): repeated points are averaged; a missing
/// point is the mean of the linear interpolations along those axes on which it has
/// neighbours on both sides, in passes from the measured ones outwards; where that
/// leaves points without a value, the emptiest coordinate is dropped.
/// Instantiated for 1, 2 and 4 axes.
template <std::size_t N>
[[nodiscard]] complete_grid<N> make_grid(const std::vector<measured_point<N>>& points);

}  // namespace octavo::sim
