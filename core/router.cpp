// Choice of a replica: see router.hpp.
#include "core/router.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "core/error.hpp"

namespace octavo {
namespace {

constexpr std::size_t max_remembered_blocks = 1'000'000;
/// A prefix does not bind to a replica with this many times the least load …
constexpr std::int64_t relief_ratio = 2;
/// … as long as the difference is worth more than a long prompt.
constexpr std::int64_t relief_tokens = 65'536;

}  // namespace

std::string_view to_string(router_kind kind) {
  switch (kind) {
    case router_kind::round_robin:
      return "round_robin";
    case router_kind::least_loaded:
      return "least_loaded";
    case router_kind::prefix_affinity:
      return "prefix_affinity";
  }
  return "unknown";
}

router_kind parse_router(std::string_view name) {
  for (const auto kind :
       {router_kind::round_robin, router_kind::least_loaded, router_kind::prefix_affinity}) {
    if (to_string(kind) == name) return kind;
  }
  throw input_error("router: '" + std::string{name} +
                    "' is not known; allowed: round_robin, least_loaded, prefix_affinity");
}

std::string_view to_string(route_reason why) {
  switch (why) {
    case route_reason::in_turn:
      return "in_turn";
    case route_reason::least_loaded:
      return "least_loaded";
    case route_reason::longest_prefix:
      return "longest_prefix";
    case route_reason::relieved:
      return "relieved";
  }
  return "unknown";
}

router::router(router_kind kind, std::uint32_t replicas) : kind_(kind), load_(replicas) {
  if (replicas < 1 || replicas > 64) {
    throw input_error("replicas: " + std::to_string(replicas) + " is not allowed; 1 to 64 are");
  }
}

std::uint32_t router::least_loaded_of(std::uint64_t mask) const {
  std::uint32_t best = static_cast<std::uint32_t>(std::countr_zero(mask));
  for (std::uint32_t r = best; r < replicas(); ++r) {
    if (((mask >> r) & 1) != 0 && load_[r] < load_[best]) best = r;
  }
  return best;
}

route router::choose_by_prefix(const request_spec& spec) const {
  const std::uint32_t idlest = least_loaded_of(~std::uint64_t{0});
  std::uint64_t mask = 0;
  std::uint32_t matched = 0;
  for (const block_key& key : spec.keys) {
    const auto found = sent_.find(key);
    if (found == sent_.end()) break;
    const std::uint64_t narrowed = matched == 0 ? found->second : mask & found->second;
    if (narrowed == 0) break;
    mask = narrowed;
    ++matched;
  }
  if (matched == 0) return {idlest, route_reason::least_loaded, 0};
  const std::uint32_t best = least_loaded_of(mask);
  const bool overloaded =
      load_[best] > relief_ratio * load_[idlest] && load_[best] - load_[idlest] > relief_tokens;
  if (overloaded) return {idlest, route_reason::relieved, 0};
  return {best, route_reason::longest_prefix, matched};
}

void router::remember(const request_spec& spec, std::uint32_t replica) {
  for (const block_key& key : spec.keys) {
    const auto [entry, added] = sent_.try_emplace(key, 0);
    entry->second |= std::uint64_t{1} << replica;
    if (added) sent_order_.push_back(key);
  }
  while (sent_order_.size() > max_remembered_blocks) {
    sent_.erase(sent_order_.front());
    sent_order_.pop_front();
  }
}

route router::choose(const request_spec& spec) {
  route chosen;
  switch (kind_) {
    case router_kind::round_robin:
      chosen = {next_, route_reason::in_turn, 0};
      next_ = (next_ + 1) % replicas();
      break;
    case router_kind::least_loaded:
      chosen = {least_loaded_of(~std::uint64_t{0}), route_reason::least_loaded, 0};
      break;
    case router_kind::prefix_affinity:
      chosen = choose_by_prefix(spec);
      remember(spec, chosen.replica);
      break;
  }
  // What is outstanding: the prompt, and no guess of what it will generate.
  const std::int64_t tokens = spec.prompt_tokens.raw();
  if (live_.try_emplace(spec.id.raw(), placed{chosen.replica, tokens}).second) {
    load_[chosen.replica] += tokens;
  }
  return chosen;
}

void router::finished(request_id id) {
  const auto found = live_.find(id.raw());
  if (found == live_.end()) return;
  load_[found->second.replica] -= found->second.tokens;
  live_.erase(found);
}

std::uint32_t router::replica_of(request_id id) const {
  const auto found = live_.find(id.raw());
  return found == live_.end() ? replicas() : found->second.replica;
}

}  // namespace octavo
