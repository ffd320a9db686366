// Warp-wide exchanges of values: shuffles, ballots, matches.
#include <bit>

#include "gpu/simt/gang.hpp"

namespace octavo::gpu::simt {
namespace {

/// What a lane brings to an exchange, and takes from it.
struct exchange {
  std::uint64_t value;
  unsigned source;
  std::uint64_t result;
};

exchange& of(void* lane) {
  return *static_cast<exchange*>(lane);
}

void do_shuffle(void* const (&lanes)[32], std::uint32_t mask) {
  for (auto m = mask; m != 0; m &= m - 1) {
    auto& mine = of(lanes[std::countr_zero(m)]);
    if ((mask >> mine.source & 1) == 0) {
      fail("__shfl_sync", "a lane reads from one that does not take part",
           "the value would be undefined on a device");
    }
    mine.result = of(lanes[mine.source]).value;
  }
}

void do_ballot(void* const (&lanes)[32], std::uint32_t mask) {
  std::uint32_t votes = 0;
  for (auto m = mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (of(lanes[lane]).value != 0) votes |= 1U << lane;
  }
  for (auto m = mask; m != 0; m &= m - 1) of(lanes[std::countr_zero(m)]).result = votes;
}

void do_match(void* const (&lanes)[32], std::uint32_t mask) {
  for (auto m = mask; m != 0; m &= m - 1) {
    auto& mine = of(lanes[std::countr_zero(m)]);
    std::uint32_t equal = 0;
    for (auto o = mask; o != 0; o &= o - 1) {
      const int other = std::countr_zero(o);
      if (of(lanes[other]).value == mine.value) equal |= 1U << other;
    }
    mine.result = equal;
  }
}

}  // namespace

void warp_barrier(std::uint32_t mask) {
  collective(mask, "__syncwarp", nullptr, nullptr);
}

std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, unsigned source_lane) {
  exchange mine{value, source_lane & 31, 0};
  collective(mask, "__shfl_sync", &mine, do_shuffle);
  return mine.result;
}

std::uint32_t ballot(std::uint32_t mask, bool predicate) {
  exchange mine{predicate ? 1U : 0U, 0, 0};
  collective(mask, "__ballot_sync", &mine, do_ballot);
  return static_cast<std::uint32_t>(mine.result);
}

std::uint32_t match_any(std::uint32_t mask, std::uint64_t value) {
  exchange mine{value, 0, 0};
  collective(mask, "__match_any_sync", &mine, do_match);
  return static_cast<std::uint32_t>(mine.result);
}

}  // namespace octavo::gpu::simt
