// Runs the threads of one block, or of all blocks of a cooperative launch, as
// fibers on one OS thread. A thread runs until it waits for others; the schedule
// says who goes next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/simt/context.hpp"
#include "gpu/simt/counters.hpp"
#include "gpu/simt/options.hpp"
#include "gpu/simt/thread_api.hpp"

namespace octavo::gpu::simt {

/// A launch as the emulator sees it.
struct grid_work {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  bool cooperative = false;
  int device = 0;
  std::string kernel;                           // name for reports
  const std::function<void()>* body = nullptr;  // runs one thread
};

struct block_state;

/// A copy from global memory that was issued and has not landed.
struct pending_copy {
  void* shared;
  const void* global;  // null: zeros
  int group;
};

/// A counted access to shared memory.
struct shared_access {
  std::uint32_t offset;
  std::uint32_t bytes;
};

struct fiber : thread_view {
  context registers;
  block_state* owner = nullptr;
  const char* waits_for = nullptr;  // null while it runs or could run
  std::uint32_t wait_mask = 0;      // of a warp-wide operation, or a barrier's number
  bool ended = false;
  barrier_result met{};
  int copy_group = 0;
  std::vector<pending_copy> copies;
  std::vector<shared_access> accesses;  // since its warp last met
};

/// A warp-wide operation for which lanes are still missing.
struct warp_meeting {
  std::uint32_t mask = 0;  // as the lanes gave it; exited lanes do not count
  std::uint32_t arrived = 0;
  const char* what = nullptr;
  collective_work work = nullptr;
  void* lanes[32] = {};
  fiber* waiting[32] = {};
};

struct warp_state {
  std::uint32_t alive = 0;
  std::vector<warp_meeting> meetings;
};

struct barrier_state {
  unsigned arrived = 0;
  int nonzero = 0;
  std::vector<fiber*> waiting;
};

struct block_state : block_view {
  unsigned live = 0;
  barrier_state barriers[16];
  std::vector<warp_state> warps;
  std::vector<unsigned char> storage;
  std::vector<fiber*> fibers;  // its own, by linear index
};

class gang {
 public:
  gang() = default;
  gang(const gang&) = delete;
  gang& operator=(const gang&) = delete;
  ~gang();

  /// Runs `count` blocks side by side, the first of linear index `first`; throws
  /// what the first thread to fail threw. Adds to `tally`.
  void run(const grid_work& work, const options& how, unsigned first, unsigned count);

  /// The gang that this OS thread is running, never null within a kernel.
  static gang& current();

  // For the operations of thread_api.hpp.
  fiber& running() { return *running_; }
  const options& how() const { return how_; }
  const grid_work& work() const { return *work_; }
  void wait(const char* what, std::uint32_t mask);
  void resume(fiber& f);
  void resume_all(std::vector<fiber*>& waiting);
  void pause_spinning();
  void note_progress() { idle_rounds_ = 0; }
  /// `call` as the reports name it: kernel, block and thread of the running fiber.
  std::string place() const;
  counts tally;

 private:
  static void fiber_entry();
  [[noreturn]] void fiber_loop();
  /// Runs a thread to its end; returns who goes next, null when nobody does.
  fiber* run_one(fiber& f);
  void end(fiber& f);
  void prepare(const grid_work& work, unsigned count);
  void add_fibers(std::size_t count);
  void start_block(block_state& b, unsigned linear, std::size_t first_fiber);
  fiber* next();
  void switch_to(fiber* f);
  void check_spin_time();
  std::string states() const;
  void abandon();

  stack_pool stacks_;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<std::unique_ptr<block_state>> blocks_;
  std::size_t blocks_used_ = 0;
  context main_;
  fiber* running_ = nullptr;
  std::deque<fiber*> ready_;
  std::vector<fiber*> spinning_;
  std::uint64_t idle_rounds_ = 0;  // in which all threads only spun
  unsigned live_ = 0;              // blocks with live threads
  const grid_work* work_ = nullptr;
  options how_;
  std::uint64_t random_state_ = 1;
  std::exception_ptr failure_;
};

/// Completes what waits for threads of this warp or block that have ended.
void settle_after_end(gang& g, fiber& f);

}  // namespace octavo::gpu::simt
