// The scheduler of fibers: who runs next, how a block starts and ends, and what is
// reported when nobody can go on.
#include "gpu/simt/gang.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include "gpu/runtime/device_error.hpp"

namespace octavo::gpu::simt {

constinit thread_local const thread_view* current_thread = nullptr;

namespace {

constexpr std::size_t shared_alignment = 1024;
constinit thread_local gang* current_gang = nullptr;

dim3 unravel(unsigned linear, const dim3& size) {
  return {linear % size.x, linear / size.x % size.y, linear / size.x / size.y};
}

std::string text(const dim3& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

}  // namespace

gang& gang::current() {
  return *current_gang;
}

gang::~gang() {
  for (auto& f : fibers_) discard_context(f->registers);
}

void gang::run(const grid_work& work, const options& how, unsigned first, unsigned count) {
  work_ = &work;
  how_ = how;
  random_state_ = (how.seed * 0x9e3779b97f4a7c15ULL) ^ (first * 0xbf58476d1ce4e5b9ULL + 1);
  prepare(work, count);
  const std::size_t threads = std::size_t{work.block.x} * work.block.y * work.block.z;
  std::vector<fiber*> all;
  for (unsigned i = 0; i < count; ++i) {
    start_block(*blocks_[i], first + i, i * threads);
    all.insert(all.end(), blocks_[i]->fibers.begin(), blocks_[i]->fibers.end());
  }
  live_ = count;
  ready_.assign(all.begin(), all.end());
  gang* outer = current_gang;
  current_gang = this;
  adopt_thread(main_);
  running_ = next();
  current_thread = running_;
  switch_context(main_, running_->registers);
  current_gang = outer;
  current_thread = nullptr;
  tally.blocks += count;
  if (failure_) {
    abandon();
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

void gang::prepare(const grid_work& work, unsigned count) {
  const std::size_t threads = std::size_t{work.block.x} * work.block.y * work.block.z;
  if (fibers_.size() < threads * count) add_fibers(threads * count - fibers_.size());
  while (blocks_.size() < count) blocks_.push_back(std::make_unique<block_state>());
  blocks_used_ = count;
  spinning_.clear();
  idle_rounds_ = 0;
}

void gang::add_fibers(std::size_t count) {
  for (const auto& stack : stacks_.grow(count)) {
    auto f = std::make_unique<fiber>();
    f->registers.stack_low = stack.low;
    f->registers.stack_bytes = stack.bytes;
    make_context(f->registers, fiber_entry);
    fibers_.push_back(std::move(f));
  }
}

void gang::start_block(block_state& b, unsigned linear, std::size_t first_fiber) {
  const unsigned threads = work_->block.x * work_->block.y * work_->block.z;
  b.index = unravel(linear, work_->grid);
  b.size = work_->block;
  b.grid = work_->grid;
  b.live = threads;
  b.shared_bytes = work_->shared_bytes;
  b.storage.resize(work_->shared_bytes + shared_alignment);
  const auto raw = reinterpret_cast<std::uintptr_t>(b.storage.data());
  b.shared = b.storage.data() + (shared_alignment - raw % shared_alignment) % shared_alignment;
  // All bits set is a NaN in every floating-point format and -1 in integers.
  std::memset(b.shared, 0xff, b.shared_bytes);
  for (auto& barrier : b.barriers) barrier = {};
  b.warps.assign((threads + 31) / 32, {});
  b.fibers.clear();
  for (unsigned i = 0; i < threads; ++i) {
    auto& f = *fibers_[first_fiber + i];
    f.index = unravel(i, work_->block);
    f.linear = i;
    f.block = f.owner = &b;
    f.waits_for = nullptr;
    f.ended = false;
    f.copy_group = 0;
    f.copies.clear();
    f.accesses.clear();
    b.warps[i / 32].alive |= 1U << (i % 32);
    b.fibers.push_back(&f);
  }
}

void gang::fiber_entry() {
  context_entered();
  gang::current().fiber_loop();
}

void gang::fiber_loop() {
  // Resumed once for each block that its fiber takes part in.
  for (;;) {
    fiber& f = *running_;
    fiber* following = run_one(f);
    if (following != nullptr) {
      switch_to(following);
    } else {
      switch_context(f.registers, main_);
    }
  }
}

fiber* gang::run_one(fiber& f) {
  try {
    (*work_->body)();
    end(f);
    fiber* following = next();
    if (following == nullptr && live_ > 0) {
      throw device_error(work_->kernel, work_->device,
                         "deadlock: threads wait for others that have ended\n" + states(),
                         "every thread named by a barrier or mask must reach it");
    }
    return following;
  } catch (...) {
    failure_ = std::current_exception();
    return nullptr;
  }
}

void gang::end(fiber& f) {
  copy_async_wait(-1);
  f.ended = true;
  f.owner->warps[f.linear / 32].alive &= ~(1U << (f.linear % 32));
  if (--f.owner->live == 0) --live_;
  note_progress();
  settle_after_end(*this, f);
}

fiber* gang::next() {
  if (ready_.empty() && !spinning_.empty()) {
    check_spin_time();
    ready_.assign(spinning_.begin(), spinning_.end());
    spinning_.clear();
  }
  if (ready_.empty()) return nullptr;
  if (how_.order == thread_order::random) {
    random_state_ = random_state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    std::swap(ready_.front(), ready_[(random_state_ >> 33) % ready_.size()]);
  }
  fiber* f = nullptr;
  if (how_.order == thread_order::lifo) {
    f = ready_.back();
    ready_.pop_back();
  } else {
    f = ready_.front();
    ready_.pop_front();
  }
  return f;
}

void gang::check_spin_time() {
  // Another device, on another OS thread, may be the one that is waited for: first
  // its turn is offered often, then it is given time.
  constexpr std::uint64_t offers = 1000;
  constexpr double pause_seconds = 0.001;
  ++idle_rounds_;
  if (idle_rounds_ <= offers) {
    std::this_thread::yield();
    return;
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(pause_seconds));
  const double waited = static_cast<double>(idle_rounds_ - offers) * pause_seconds;
  if (waited < how_.spin_seconds_max) return;
  throw device_error(work_->kernel, work_->device,
                     "all threads have been spinning for " + std::to_string(how_.spin_seconds_max) +
                         " s\n" + states(),
                     "the flag that they wait for is never set");
}

void gang::switch_to(fiber* f) {
  fiber* from = running_;
  if (f == from) return;
  running_ = f;
  current_thread = f;
  switch_context(from->registers, f->registers);
}

void gang::wait(const char* what, std::uint32_t mask) {
  fiber& f = *running_;
  f.waits_for = what;
  f.wait_mask = mask;
  fiber* following = next();
  if (following == nullptr) {
    throw device_error(
        work_->kernel, work_->device,
        "deadlock: every thread that has not ended waits\n" + states(),
        "a barrier or warp-wide operation stands where not all of its threads come by");
  }
  switch_to(following);
}

void gang::resume(fiber& f) {
  f.waits_for = nullptr;
  ready_.push_back(&f);
}

void gang::resume_all(std::vector<fiber*>& waiting) {
  for (fiber* f : waiting) resume(*f);
  waiting.clear();
}

void gang::pause_spinning() {
  if (!work_->cooperative) {
    throw device_error(place(), work_->device, "a thread spins in a launch that is not cooperative",
                       "set launch_shape::cooperative: only then do all blocks run side by side");
  }
  fiber& f = *running_;
  f.waits_for = "spin_pause";
  f.wait_mask = 0;
  spinning_.push_back(&f);
  switch_to(next());
  f.waits_for = nullptr;
}

std::string gang::place() const {
  return work_->kernel + ", block " + text(running_->block->index) + ", thread " +
         text(running_->index);
}

std::string gang::states() const {
  constexpr int lines_max = 24;
  std::ostringstream out;
  int lines = 0;
  for (std::size_t i = 0; i < blocks_used_ && lines < lines_max; ++i) {
    const auto& b = *blocks_[i];
    for (std::size_t first = 0; first < b.fibers.size() && lines < lines_max; ++lines) {
      const auto& f = *b.fibers[first];
      const auto same = [&](const fiber& o) {
        return o.ended == f.ended && o.waits_for == f.waits_for &&
               (f.waits_for == nullptr || o.wait_mask == f.wait_mask);
      };
      std::size_t last = first;
      while (last + 1 < b.fibers.size() && same(*b.fibers[last + 1])) ++last;
      out << "    block " << text(b.index) << " threads " << first << " to " << last << ": ";
      if (f.ended) {
        out << "ended\n";
      } else if (f.waits_for != nullptr) {
        out << "wait at " << f.waits_for << ", 0x" << std::hex << f.wait_mask << std::dec << "\n";
      } else {
        out << "run\n";
      }
      first = last + 1;
    }
  }
  return out.str();
}

void gang::abandon() {
  for (std::size_t i = 0; i < blocks_used_; ++i) {
    for (fiber* f : blocks_[i]->fibers) make_context(f->registers, fiber_entry);
  }
  ready_.clear();
  spinning_.clear();
}

void fail(const char* call, const char* problem, const char* advice) {
  auto& g = gang::current();
  throw device_error(std::string(call) + " in " + g.place(), g.work().device, problem, advice);
}

void spin_pause() {
  gang::current().pause_spinning();
}

}  // namespace octavo::gpu::simt
