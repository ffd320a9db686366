// Keys of prefix-cache blocks: equal keys mean equal tokens, equal tokens before
// them, and equal everything else that the KV depends on.
//
// A key is chained: key(i) = H(secret; key(i-1), tokens of block i). The chain's
// root absorbs what isolates tenants and weights: the adapter's content digest
// and the cache salt. Every field is tagged and length-prefixed, so that an
// adapter "x" and a salt "x" never give the same key.
//
//   block_hasher hasher{secret};
//   block_key key = hasher.root({.adapter_digest = "", .cache_salt = "tenant-7"});
//   for (auto block : blocks) key = hasher.chain(key, block);
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "core/siphash.hpp"
#include "core/units.hpp"

namespace octavo {

/// The key of one full block.
using block_key = hash128;

/// What separates two requests whose tokens are equal.
struct key_scope {
  /// Digest of the adapter's weights, not its name; empty: the base model.
  std::string_view adapter_digest = {};
  /// Client-chosen isolation; empty: shared with all who give none.
  std::string_view cache_salt = {};
  /// Digest of inputs that token ids do not show (images, masks).
  std::string_view extra_digest = {};
};

/// Makes chained block keys under one secret.
class block_hasher {
 public:
  explicit block_hasher(hash128 secret) : secret_(secret) {}

  /// The key before block 0.
  [[nodiscard]] block_key root(const key_scope& scope) const;
  /// The key of the block of `tokens` behind `parent`.
  [[nodiscard]] block_key chain(const block_key& parent, std::span<const token_id> tokens) const;
  /// The key of block number `index` whose chained content a trace names `content_id`.
  [[nodiscard]] block_key named(const block_key& parent_scope, std::uint64_t content_id,
                                std::uint32_t index) const;

 private:
  hash128 secret_;
};

/// The key of a block whose content nobody else can have: block `index` of one
/// sequence of which only lengths are known. It can be found again by the same
/// sequence (after a preemption) and by no other.
[[nodiscard]] constexpr block_key private_key(request_id request, std::uint32_t sample,
                                              std::uint32_t index) {
  return {request.raw() * 0x9e3779b97f4a7c15ULL + 1,
          0x8000000000000000ULL | (std::uint64_t{sample} << 32) | index};
}

/// Keys are uniform already: any 64 of their bits serve as a table hash.
struct block_key_hash {
  std::size_t operator()(const block_key& key) const noexcept {
    return static_cast<std::size_t>(key.lo ^ (key.hi * 0x9e3779b97f4a7c15ULL));
  }
};

}  // namespace octavo
