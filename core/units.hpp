// Strong unit types. No bare integer crosses an interface of core: a number of
// tokens, a number of blocks, a block's id and a moment in time do not mix.
//
//   token_count prompt{374};
//   block_count need = blocks_for(prompt, token_count{16});   // 24 blocks
//   prompt += token_count{1};
//
// Counts are signed so that a subtraction that goes wrong is visible (and
// asserted) rather than a huge number.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace octavo {

/// A count or an amount: values of one tag add, subtract and compare.
template <class Tag, class Rep>
class quantity {
 public:
  using rep = Rep;

  constexpr quantity() = default;
  constexpr explicit quantity(Rep value) : value_(value) {}

  [[nodiscard]] constexpr Rep raw() const { return value_; }

  friend constexpr auto operator<=>(quantity, quantity) = default;

  constexpr quantity& operator+=(quantity other) {
    value_ = static_cast<Rep>(value_ + other.value_);
    return *this;
  }
  constexpr quantity& operator-=(quantity other) {
    value_ = static_cast<Rep>(value_ - other.value_);
    return *this;
  }
  friend constexpr quantity operator+(quantity a, quantity b) { return a += b; }
  friend constexpr quantity operator-(quantity a, quantity b) { return a -= b; }
  constexpr quantity& operator++() { return *this += quantity{1}; }
  constexpr quantity& operator--() { return *this -= quantity{1}; }

  static constexpr quantity max() { return quantity{std::numeric_limits<Rep>::max()}; }

 private:
  Rep value_ = 0;
};

/// A name for a thing: values of one tag compare, and nothing else.
template <class Tag, class Rep>
class identifier {
 public:
  using rep = Rep;

  constexpr identifier() = default;
  constexpr explicit identifier(Rep value) : value_(value) {}

  [[nodiscard]] constexpr Rep raw() const { return value_; }

  friend constexpr auto operator<=>(identifier, identifier) = default;

 private:
  Rep value_ = 0;
};

/// Tokens, of a prompt, a context or a budget.
using token_count = quantity<struct token_count_tag, std::int32_t>;
/// KV-cache blocks (pages) of `block_size` tokens.
using block_count = quantity<struct block_count_tag, std::int32_t>;
/// A moment or a duration in microseconds. Moments count from the start of the run.
using micros = quantity<struct micros_tag, std::int64_t>;

/// The physical number of a KV block.
using block_id = identifier<struct block_id_tag, std::uint32_t>;
/// A request, named by the engine.
using request_id = identifier<struct request_id_tag, std::uint64_t>;
/// A step of one scheduler, counted from 1.
using step_id = identifier<struct step_id_tag, std::uint64_t>;
/// A token of a model's vocabulary.
using token_id = std::int32_t;

/// Blocks that hold `tokens` tokens at `block_size` tokens a block, rounded up.
[[nodiscard]] constexpr block_count blocks_for(token_count tokens, token_count block_size) {
  return block_count{(tokens.raw() + block_size.raw() - 1) / block_size.raw()};
}

}  // namespace octavo
