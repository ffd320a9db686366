// Counts the wavefronts that accesses to shared memory take: 32 banks of 4 bytes
// serve each bank's one word at a time. Accesses of a warp's lanes since they last
// met are paired by their number, first with first.
#pragma once

#include "gpu/simt/gang.hpp"

namespace octavo::gpu::simt {

/// Counts and forgets the accesses of one warp, or of all warps of a block.
void count_warp_accesses(gang& g, block_state& b, std::size_t warp);
void count_block_accesses(gang& g, block_state& b);

/// Counts one phase of ldmatrix: eight rows of 16 bytes, by their offsets.
void count_matrix_rows(gang& g, const std::uint32_t (&offsets)[8]);

}  // namespace octavo::gpu::simt
