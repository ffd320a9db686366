// Wavefronts of shared memory accesses, warp by warp.
#include "gpu/simt/bank_conflicts.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace octavo::gpu::simt {
namespace {

constexpr std::uint32_t banks = 32;
constexpr std::uint32_t bank_bytes = 4;

/// Wavefronts for accesses that the hardware serves together: the most distinct
/// words that any bank is asked for.
std::uint64_t wavefronts(const std::vector<shared_access>& together) {
  std::array<std::vector<std::uint32_t>, banks> words;
  for (const auto& a : together) {
    for (auto w = a.offset / bank_bytes; w <= (a.offset + a.bytes - 1) / bank_bytes; ++w) {
      auto& bank = words[w % banks];
      if (std::find(bank.begin(), bank.end(), w) == bank.end()) bank.push_back(w);
    }
  }
  std::size_t most = 0;
  for (const auto& bank : words) most = std::max(most, bank.size());
  return most;
}

void count(gang& g, const std::vector<shared_access>& together) {
  if (together.empty()) return;
  const auto taken = wavefronts(together);
  g.tally.shared_wavefronts += taken;
  g.tally.bank_conflicts += taken - 1;
}

}  // namespace

void count_warp_accesses(gang& g, block_state& b, std::size_t warp) {
  const std::size_t first = warp * 32;
  const std::size_t last = std::min(first + 32, b.fibers.size());
  std::size_t longest = 0;
  for (std::size_t i = first; i < last; ++i) {
    longest = std::max(longest, b.fibers[i]->accesses.size());
  }
  for (std::size_t n = 0; n < longest; ++n) {
    // 4 bytes a lane: the whole warp together; 8: half of it; 16: a quarter.
    std::vector<shared_access> together;
    std::uint32_t bytes = 0;
    for (std::size_t i = first; i < last; ++i) {
      const auto& accesses = b.fibers[i]->accesses;
      if (n >= accesses.size()) continue;
      if (bytes + accesses[n].bytes > banks * bank_bytes) {
        count(g, together);
        together.clear();
        bytes = 0;
      }
      together.push_back(accesses[n]);
      bytes += std::max(accesses[n].bytes, bank_bytes);
    }
    count(g, together);
  }
  for (std::size_t i = first; i < last; ++i) b.fibers[i]->accesses.clear();
}

void count_block_accesses(gang& g, block_state& b) {
  for (std::size_t w = 0; w < b.warps.size(); ++w) count_warp_accesses(g, b, w);
}

void count_matrix_rows(gang& g, const std::uint32_t (&offsets)[8]) {
  std::vector<shared_access> rows;
  for (const auto offset : offsets) rows.push_back({offset, 16});
  count(g, rows);
}

}  // namespace octavo::gpu::simt
