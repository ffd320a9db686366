// Which adjacent pairs of tokens merge, into what, and in which order of preference.
#pragma once

#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace octavo::model {

/// What a pair becomes. The lowest rank merges first.
struct merge_rule {
  std::uint32_t rank = 0;
  token_id result = 0;
};

/// A map from pairs of tokens to rules. It is asked once per adjacent pair of
/// every text, so it is one flat array with linear probing.
class merge_table {
 public:
  /// Room for `rules` rules.
  explicit merge_table(std::size_t rules = 0);

  /// Adds a rule; a later one for the same pair replaces it.
  void insert(token_id left, token_id right, merge_rule rule);
  /// The pair's rule, or null.
  [[nodiscard]] const merge_rule* find(token_id left, token_id right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = home_of(key);; at = (at + 1) & mask_) {
      if (entries_[at].key == key) return &entries_[at].rule;
      if (entries_[at].key == empty_key) return nullptr;
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct entry {
    std::uint64_t key;
    merge_rule rule;
  };

  // Tokens are not negative, so no pair has this key.
  static constexpr std::uint64_t empty_key = ~std::uint64_t{0};

  static std::uint64_t key_of(token_id left, token_id right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
           static_cast<std::uint32_t>(right);
  }
  [[nodiscard]] std::size_t home_of(std::uint64_t key) const {
    key *= 0x9E3779B97F4A7C15U;
    return static_cast<std::size_t>(key ^ (key >> 32)) & mask_;
  }
  void grow();

  std::vector<entry> entries_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace octavo::model
