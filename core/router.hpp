// Which replica gets a request. Pure and deterministic: the choice depends on
// the order of submits and finishes alone.
//
//   round_robin      in turn
//   least_loaded     the fewest outstanding tokens, then the lowest number
//   prefix_affinity  the replica that was sent the longest matching prefix,
//                    unless it is much busier than the least loaded one
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/block_key.hpp"
#include "core/request.hpp"

namespace octavo {

enum class router_kind : std::uint8_t { round_robin, least_loaded, prefix_affinity };

[[nodiscard]] std::string_view to_string(router_kind kind);
/// Throws input_error listing the names allowed.
[[nodiscard]] router_kind parse_router(std::string_view name);

enum class route_reason : std::uint8_t { in_turn, least_loaded, longest_prefix, relieved };

[[nodiscard]] std::string_view to_string(route_reason why);

struct route {
  std::uint32_t replica = 0;
  route_reason why = route_reason::in_turn;
  /// Leading blocks that the replica was sent before.
  std::uint32_t matched_blocks = 0;
};

class router {
 public:
  /// At most 64 replicas. Throws input_error otherwise.
  router(router_kind kind, std::uint32_t replicas);

  [[nodiscard]] route choose(const request_spec& spec);
  /// A request has ended: its tokens no longer count as load.
  void finished(request_id id);

  [[nodiscard]] std::uint32_t replicas() const { return static_cast<std::uint32_t>(load_.size()); }
  /// The replica a live request was sent to; replicas() where it is unknown.
  [[nodiscard]] std::uint32_t replica_of(request_id id) const;

 private:
  struct placed {
    std::uint32_t replica = 0;
    std::int64_t tokens = 0;
  };

  [[nodiscard]] std::uint32_t least_loaded_of(std::uint64_t mask) const;
  [[nodiscard]] route choose_by_prefix(const request_spec& spec) const;
  void remember(const request_spec& spec, std::uint32_t replica);

  router_kind kind_;
  std::uint32_t next_ = 0;
  std::vector<std::int64_t> load_;
  std::unordered_map<std::uint64_t, placed> live_;
  /// Which replicas were sent a block, as bits; oldest forgotten first.
  std::unordered_map<block_key, std::uint64_t, block_key_hash> sent_;
  std::deque<block_key> sent_order_;
};

}  // namespace octavo
