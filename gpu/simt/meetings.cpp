// Where threads meet: block barriers, named barriers and warp-wide operations.
#include <bit>
#include <cstring>

#include "gpu/simt/bank_conflicts.hpp"
#include "gpu/simt/gang.hpp"

namespace octavo::gpu::simt {
namespace {

void complete(gang& g, block_state& b, barrier_state& barrier) {
  ++g.tally.barriers;
  g.note_progress();
  if (g.how().count_bank_conflicts) count_block_accesses(g, b);
  for (fiber* f : barrier.waiting) {
    f->met = {static_cast<int>(barrier.arrived), barrier.nonzero};
  }
  barrier.arrived = 0;
  barrier.nonzero = 0;
  g.resume_all(barrier.waiting);
}

void complete(gang& g, block_state& b, warp_state& warp, std::size_t which) {
  ++g.tally.collectives;
  warp_meeting meeting = warp.meetings[which];
  warp.meetings.erase(warp.meetings.begin() + static_cast<std::ptrdiff_t>(which));
  if (g.how().count_bank_conflicts) {
    count_warp_accesses(g, b, static_cast<std::size_t>(&warp - b.warps.data()));
  }
  if (meeting.work != nullptr) meeting.work(meeting.lanes, meeting.arrived);
  std::vector<fiber*> waiting;
  for (auto m = meeting.arrived; m != 0; m &= m - 1) {
    fiber* f = meeting.waiting[std::countr_zero(m)];
    if (f != &g.running()) waiting.push_back(f);
  }
  g.resume_all(waiting);
}

warp_meeting& join(warp_state& warp, std::uint32_t mask, const char* what, collective_work work) {
  for (auto& m : warp.meetings) {
    if (m.mask == mask && m.what == what && m.work == work) return m;
  }
  auto& m = warp.meetings.emplace_back();
  m.mask = mask;
  m.what = what;
  m.work = work;
  return m;
}

}  // namespace

barrier_result block_barrier(int value) {
  auto& g = gang::current();
  fiber& f = g.running();
  auto& barrier = f.owner->barriers[0];
  ++barrier.arrived;
  barrier.nonzero += value != 0 ? 1 : 0;
  barrier.waiting.push_back(&f);
  if (barrier.arrived == f.owner->live) complete(g, *f.owner, barrier);
  g.wait("__syncthreads", 0);
  return f.met;
}

void named_barrier(unsigned id, unsigned threads, bool wait) {
  auto& g = gang::current();
  fiber& f = g.running();
  if (id == 0 || id >= 16) fail("named barrier", "its number is not in 1 to 15");
  if (threads == 0 || threads % 32 != 0) {
    fail("named barrier", "its number of threads is not a multiple of 32");
  }
  auto& barrier = f.owner->barriers[id];
  ++barrier.arrived;
  if (wait) barrier.waiting.push_back(&f);
  if (barrier.arrived == threads) complete(g, *f.owner, barrier);
  if (wait) g.wait("named barrier", id);
}

void collective(std::uint32_t mask, const char* what, void* mine, collective_work work) {
  auto& g = gang::current();
  fiber& f = g.running();
  const unsigned lane = f.linear & 31;
  if ((mask >> lane & 1) == 0) fail(what, "the calling lane is not in its own mask");
  auto& warp = f.owner->warps[f.linear / 32];
  auto& meeting = join(warp, mask, what, work);
  meeting.arrived |= 1U << lane;
  meeting.lanes[lane] = mine;
  meeting.waiting[lane] = &f;
  if (meeting.arrived == (mask & warp.alive)) {
    complete(g, *f.owner, warp, static_cast<std::size_t>(&meeting - warp.meetings.data()));
    // The last lane goes back in line as well, so that the schedule decides who is first.
    g.resume(f);
  }
  g.wait(what, mask);
}

void settle_after_end(gang& g, fiber& f) {
  auto& b = *f.owner;
  auto& barrier = b.barriers[0];
  if (b.live > 0 && barrier.arrived == b.live) complete(g, b, barrier);
  auto& warp = b.warps[f.linear / 32];
  for (std::size_t i = 0; i < warp.meetings.size();) {
    const auto& m = warp.meetings[i];
    if (m.arrived == (m.mask & warp.alive)) {
      complete(g, b, warp, i);
    } else {
      ++i;
    }
  }
  if (g.how().count_bank_conflicts && b.live == 0) count_block_accesses(g, b);
}

}  // namespace octavo::gpu::simt
