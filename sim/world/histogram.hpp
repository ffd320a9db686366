// A log-linear histogram for quantities that come by the hundred million (gaps
// between tokens): constant memory, 256 buckets an octave, so a percentile is
// off by at most 0.2 %. Counts, sum and maximum are exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo::sim {

class histogram {
 public:
  histogram() : counts_((64 - octave_bits + 1) * buckets_per_octave) {}

  void record(std::uint64_t value) {
    ++counts_[index_of(value)];
    ++count_;
    sum_ += value;
    max_ = std::max(max_, value);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  /// The value below which a share `q` of the values lies, 0 <= q <= 1.
  [[nodiscard]] double quantile(double q) const {
    if (count_ == 0) return 0;
    const auto rank = static_cast<std::uint64_t>(q * static_cast<double>(count_ - 1));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > rank) return std::min(middle_of(i), static_cast<double>(max_));
    }
    return static_cast<double>(max_);
  }

 private:
  static constexpr unsigned octave_bits = 8;
  static constexpr std::uint64_t buckets_per_octave = std::uint64_t{1} << octave_bits;

  static std::size_t index_of(std::uint64_t value) {
    if (value < buckets_per_octave) return static_cast<std::size_t>(value);
    const unsigned shift = 63U - static_cast<unsigned>(std::countl_zero(value)) - octave_bits;
    const std::uint64_t within = (value >> shift) - buckets_per_octave;
    return static_cast<std::size_t>((shift + 1) * buckets_per_octave + within);
  }
  static double middle_of(std::size_t index) {
    if (index < buckets_per_octave) return static_cast<double>(index);
    const std::uint64_t shift = index / buckets_per_octave - 1;
    const std::uint64_t low = (buckets_per_octave + index % buckets_per_octave) << shift;
    return static_cast<double>(low) + static_cast<double>((std::uint64_t{1} << shift) - 1) / 2;
  }

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace octavo::sim
