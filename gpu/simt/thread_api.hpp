// What the emulated side of gpu/cuda.hpp and gpu/ptx.h is made of: calls by the
// CUDA thread that runs at this moment on this OS thread.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>

namespace octavo::gpu::simt {

inline constexpr std::uint32_t full_mask = 0xffffffffU;

/// What a thread can see of its block.
struct block_view {
  dim3 index;
  dim3 size;
  dim3 grid;
  unsigned char* shared = nullptr;  // dynamic shared memory
  std::size_t shared_bytes = 0;
};

/// What a thread can see of itself.
struct thread_view {
  dim3 index;
  unsigned linear = 0;  // within the block, x fastest
  const block_view* block = nullptr;
};

extern constinit thread_local const thread_view* current_thread;

inline unsigned current_lane() {
  return current_thread->linear & 31;
}

/// Ends the launch with a device_error that names kernel, block and thread.
[[noreturn]] void fail(const char* call, const char* problem, const char* advice = "");

// ---- barriers ---------------------------------------------------------------

struct barrier_result {
  int threads;  // how many met
  int nonzero;  // how many of them gave a value other than zero
};

/// All threads of the block that have not ended meet here.
barrier_result block_barrier(int value = 0);

/// `threads` threads meet at barrier `id` of 16; those that only arrive go on.
void named_barrier(unsigned id, unsigned threads, bool wait);

/// Lets others run; to be called in every loop that waits for another thread.
/// The launch must be cooperative: only then do all blocks run side by side.
void spin_pause();

// ---- warp-wide operations ---------------------------------------------------

/// Lanes named by `mask` meet; the last to come runs `work` on what all brought
/// (null for lanes outside of the mask), and then all go on. `what` is for reports.
using collective_work = void (*)(void* const (&lanes)[32], std::uint32_t mask);
void collective(std::uint32_t mask, const char* what, void* mine, collective_work work);

void warp_barrier(std::uint32_t mask);
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, unsigned source_lane);
std::uint32_t ballot(std::uint32_t mask, bool predicate);
std::uint32_t match_any(std::uint32_t mask, std::uint64_t value);

/// Element types of the operands of a matrix product.
enum class fragment { float16, bfloat16 };

/// d += a * b; see mma_16x8x16 and mma_16x8x32 in gpu/ptx.h.
void multiply_16x8x16(fragment type, float (&d)[4], const std::uint32_t (&a)[4],
                      const std::uint32_t (&b)[2]);
void multiply_16x8x32_e4m3(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);

/// Loads `count` (1, 2 or 4) 8 x 8 matrices of 16-bit elements; lane 8 i + r gives
/// the address of row r of matrix i.
void ldmatrix(int count, bool transposed, std::uint32_t* registers, const void* row);

// ---- memory -----------------------------------------------------------------

/// The range must lie in a live allocation and be aligned; counts its bytes.
void check_global_read(const void* address, std::size_t bytes);
void check_global_write(void* address, std::size_t bytes);
void check_atomic(const void* address, std::size_t bytes);

/// The range must lie in the block's shared memory and be aligned.
void check_shared(const void* address, std::size_t bytes, const char* what);

/// Notes an access for the counts of bank conflicts.
void note_shared_access(const void* address, std::size_t bytes);

/// Copies 16 bytes, or writes zeros where `global` is null.
void copy_async(void* shared, const void* global);
void copy_async_commit();
/// Until at most `pending` of this thread's newest groups are under way; -1 waits
/// for copies that belong to no group yet as well.
void copy_async_wait(int pending);

}  // namespace octavo::gpu::simt
