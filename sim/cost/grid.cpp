// Axes, and making complete grids of measurements.
#include "sim/cost/grid.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace octavo::sim {

grid_axis::grid_axis(std::vector<double> points) : points_(std::move(points)) {
  assert(!points_.empty() && std::is_sorted(points_.begin(), points_.end()));
  const double half = points_.back() / 2;
  while (anchor_ + 2 < points_.size() &&
         std::abs(points_[anchor_ + 1] - half) <= std::abs(points_[anchor_] - half)) {
    ++anchor_;
  }
}

axis_position grid_axis::find(double x) const {
  const std::size_t last = points_.size() - 1;
  if (x <= points_.front() || last == 0) return {};
  if (x > points_[last]) {
    return {anchor_, last, (x - points_[anchor_]) / (points_[last] - points_[anchor_])};
  }
  const auto above = std::lower_bound(points_.begin(), points_.end(), x);
  const auto high = static_cast<std::size_t>(above - points_.begin());
  const double step = points_[high] - points_[high - 1];
  return {high - 1, high, (x - points_[high - 1]) / step};
}

namespace {

template <std::size_t N>
using point_map = std::map<std::array<double, N>, double>;

/// Repeated measurements of a point are averaged.
template <std::size_t N>
point_map<N> average(const std::vector<measured_point<N>>& points) {
  std::map<std::array<double, N>, std::pair<double, double>> sums;
  for (const auto& point : points) {
    auto& [sum, count] = sums[point.x];
    sum += point.value;
    count += 1;
  }
  point_map<N> result;
  for (const auto& [x, sum] : sums) result[x] = sum.first / sum.second;
  return result;
}

/// Values on the product of all coordinates, NaN where nothing was measured.
template <std::size_t N>
class sparse_grid {
 public:
  explicit sparse_grid(const point_map<N>& points) {
    std::array<std::set<double>, N> coordinates;
    for (const auto& [x, value] : points) {
      for (std::size_t d = 0; d < N; ++d) coordinates[d].insert(x[d]);
    }
    std::size_t size = 1;
    for (std::size_t d = N; d-- > 0;) {
      axes_[d].assign(coordinates[d].begin(), coordinates[d].end());
      strides_[d] = size;
      size *= axes_[d].size();
    }
    values_.assign(size, std::numeric_limits<double>::quiet_NaN());
    for (const auto& [x, value] : points) values_[offset(x)] = value;
  }

  /// Fills what can be interpolated; returns how many points remain empty.
  std::size_t fill() {
    for (;;) {
      const std::vector<double> before = values_;
      std::size_t filled = 0;
      std::size_t empty = 0;
      for (std::size_t at = 0; at < values_.size(); ++at) {
        if (!std::isnan(before[at])) continue;
        values_[at] = neighbours_mean(before, at);
        std::isnan(values_[at]) ? ++empty : ++filled;
      }
      if (filled == 0 || empty == 0) return empty;
    }
  }

  [[nodiscard]] std::size_t size() const { return values_.size(); }

  [[nodiscard]] grid<N> take() && {
    std::array<grid_axis, N> axes;
    for (std::size_t d = 0; d < N; ++d) axes[d] = grid_axis{std::move(axes_[d])};
    return grid<N>{std::move(axes), std::move(values_)};
  }

 private:
  [[nodiscard]] std::size_t offset(const std::array<double, N>& x) const {
    std::size_t result = 0;
    for (std::size_t d = 0; d < N; ++d) {
      const auto found = std::lower_bound(axes_[d].begin(), axes_[d].end(), x[d]);
      result += static_cast<std::size_t>(found - axes_[d].begin()) * strides_[d];
    }
    return result;
  }

  [[nodiscard]] double neighbours_mean(const std::vector<double>& values, std::size_t at) const {
    double sum = 0;
    double count = 0;
    for (std::size_t d = 0; d < N; ++d) {
      const std::size_t position = at / strides_[d] % axes_[d].size();
      std::size_t low = position;
      std::size_t high = position;
      const auto value = [&](std::size_t p) {
        return values[at - position * strides_[d] + p * strides_[d]];
      };
      while (low > 0 && std::isnan(value(low))) --low;
      while (high + 1 < axes_[d].size() && std::isnan(value(high))) ++high;
      if (std::isnan(value(low)) || std::isnan(value(high))) continue;
      const double share = (axes_[d][position] - axes_[d][low]) / (axes_[d][high] - axes_[d][low]);
      sum += value(low) + share * (value(high) - value(low));
      count += 1;
    }
    return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
  }

  std::array<std::vector<double>, N> axes_;
  std::array<std::size_t, N> strides_{};
  std::vector<double> values_;
};

/// Removes the points of the coordinate that has the smallest share of its slice.
template <std::size_t N>
void drop_emptiest(point_map<N>& points) {
  std::array<std::map<double, std::size_t>, N> counts;
  for (const auto& [x, value] : points) {
    for (std::size_t d = 0; d < N; ++d) ++counts[d][x[d]];
  }
  std::size_t full = 1;
  for (const auto& axis : counts) full *= axis.size();
  double worst = 2;
  std::size_t worst_axis = 0;
  double worst_coordinate = 0;
  for (std::size_t d = 0; d < N; ++d) {
    const auto slice = static_cast<double>(full / counts[d].size());
    for (const auto& [coordinate, count] : counts[d]) {
      const double filled = static_cast<double>(count) / slice;
      if (filled < worst) {
        worst = filled;
        worst_axis = d;
        worst_coordinate = coordinate;
      }
    }
  }
  std::erase_if(points,
                [&](const auto& entry) { return entry.first[worst_axis] == worst_coordinate; });
}

}  // namespace

template <std::size_t N>
complete_grid<N> make_grid(const std::vector<measured_point<N>>& points) {
  point_map<N> kept = average(points);
  const std::size_t measured = kept.size();
  complete_grid<N> result;
  while (!kept.empty()) {
    sparse_grid<N> candidate{kept};
    if (candidate.fill() == 0) {
      result.points_filled = candidate.size() - kept.size();
      result.table = std::move(candidate).take();
      break;
    }
    drop_emptiest(kept);
  }
  result.points_dropped = measured - kept.size();
  return result;
}

template complete_grid<1> make_grid(const std::vector<measured_point<1>>&);
template complete_grid<2> make_grid(const std::vector<measured_point<2>>&);
template complete_grid<4> make_grid(const std::vector<measured_point<4>>&);

}  // namespace octavo::sim
