// Checked and counted accesses to memory, and asynchronous copies.
#include <algorithm>
#include <cstring>
#include <string>

#include "gpu/simt/bank_conflicts.hpp"
#include "gpu/simt/gang.hpp"
#include "gpu/simt/memory_map.hpp"

namespace octavo::gpu::simt {
namespace {

constexpr std::size_t async_bytes = 16;

void require_aligned(const void* address, std::size_t bytes, const char* what) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) {
    fail(what, ("the address is not a multiple of " + std::to_string(bytes)).c_str());
  }
}

void require_live(const void* address, std::size_t bytes, const char* what) {
  const auto problem = range_problem(address, bytes);
  if (!problem.empty()) fail(what, problem.c_str());
}

bool in_shared(const void* address, std::size_t bytes) {
  const auto& block = *current_thread->block;
  const auto offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(block.shared);
  return offset < block.shared_bytes && offset + bytes <= block.shared_bytes;
}

void land(const pending_copy& copy) {
  if (copy.global == nullptr) {
    std::memset(copy.shared, 0, async_bytes);
  } else {
    std::memcpy(copy.shared, copy.global, async_bytes);
  }
}

}  // namespace

void check_global_read(const void* address, std::size_t bytes) {
  require_aligned(address, bytes, "load from global memory");
  require_live(address, bytes, "load from global memory");
  auto& g = gang::current();
  g.tally.global_bytes_read += bytes;
  if (g.how().count_distinct_bytes) note_touched(address, bytes, false);
}

void check_global_write(void* address, std::size_t bytes) {
  require_aligned(address, bytes, "store to global memory");
  require_live(address, bytes, "store to global memory");
  auto& g = gang::current();
  g.tally.global_bytes_written += bytes;
  if (g.how().count_distinct_bytes) note_touched(address, bytes, true);
}

void check_atomic(const void* address, std::size_t bytes) {
  require_aligned(address, bytes, "atomic operation");
  if (in_shared(address, bytes)) return;
  require_live(address, bytes, "atomic operation");
  ++gang::current().tally.global_atomics;
}

void check_shared(const void* address, std::size_t bytes, const char* what) {
  require_aligned(address, bytes, what);
  const auto& block = *current_thread->block;
  if (!in_shared(address, bytes)) {
    const auto offset = static_cast<const unsigned char*>(address) - block.shared;
    fail(what, (std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                " are outside of the block's " + std::to_string(block.shared_bytes) +
                " bytes of shared memory")
                   .c_str());
  }
}

void note_shared_access(const void* address, std::size_t bytes) {
  auto& g = gang::current();
  if (!g.how().count_bank_conflicts) return;
  const auto offset = static_cast<const unsigned char*>(address) - current_thread->block->shared;
  g.running().accesses.push_back(
      {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
}

void copy_async(void* shared, const void* global) {
  check_shared(shared, async_bytes, "cp.async");
  if (global != nullptr) check_global_read(global, async_bytes);
  auto& g = gang::current();
  fiber& f = g.running();
  const pending_copy copy{shared, global, f.copy_group};
  if (g.how().copies == copy_landing::eager) {
    land(copy);
  } else {
    f.copies.push_back(copy);
  }
}

void copy_async_commit() {
  ++gang::current().running().copy_group;
}

void copy_async_wait(int pending) {
  fiber& f = gang::current().running();
  const int done = f.copy_group - pending;
  std::erase_if(f.copies, [&](const pending_copy& c) {
    if (c.group >= done) return false;
    land(c);
    return true;
  });
}

}  // namespace octavo::gpu::simt
