// Streams, events, graphs, copies and memory as every device gives them, and the
// emulator's strictness about what it only delays.
#include "gpu/runtime/stream.hpp"

#include <thread>

#include "gpu/runtime/launch.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/simt/memory_map.hpp"
#include "gpu/simt/test_support.hpp"
#include "tests/support/catch.hpp"

namespace octavo::gpu {
namespace {

using Catch::Matchers::ContainsSubstring;
using simt::error_of;

__global__ void add(int* values, int what) {
  const auto i = threadIdx.x;
  store_global(values + i, load_global(values + i) + what);
}

__global__ void wait_for_flag(int* flags, int mine, int other) {
  if (threadIdx.x == 0) {
    store_release_system(flags + mine, 1);
    while (load_acquire_system(flags + other) == 0) spin_pause();
  }
}

std::vector<int> downloaded(stream& s, const device_array<int>& values) {
  std::vector<int> host(values.size());
  values.download(s, host);
  s.synchronize();
  return host;
}

TEST_CASE("work of a stream runs in the order of its queueing") {
  stream s;
  device_array<int> values(2);
  values.fill_zero(s);
  launch(s, {dim3(1), dim3(2)}, add, values.data(), 5);
  fill_bytes(s, values.data(), 1, 4);
  launch(s, {dim3(1), dim3(2)}, add, values.data(), 2);
  CHECK(downloaded(s, values) == std::vector<int>{0x01010103, 7});
}

TEST_CASE("a copy from pageable memory is taken at the call, one from pinned memory later") {
  stream s;
  device_array<int> a(1);
  device_array<int> b(1);
  std::vector<int> pageable{3};
  pinned_array<int> pinned(1);
  pinned[0] = 3;
  a.upload(s, pageable);
  b.upload(s, pinned.span());
  pageable[0] = pinned[0] = 4;
  CHECK(downloaded(s, a)[0] == 3);
  CHECK(downloaded(s, b)[0] == 4);
}

TEST_CASE("a stream that waits for an event runs the other stream up to it, and no further") {
  stream first;
  stream second;
  device_array<int> values(1);
  values.fill_zero(first);
  event e;
  launch(first, {dim3(1), dim3(1)}, add, values.data(), 1);
  e.record(first);
  launch(first, {dim3(1), dim3(1)}, add, values.data(), 10);
  second.wait(e);
  launch(second, {dim3(1), dim3(1)}, add, values.data(), 100);
  CHECK(downloaded(second, values)[0] == 101);
  CHECK(downloaded(first, values)[0] == 111);
}

TEST_CASE("who asks an event again and again sees it become ready") {
  stream s;
  device_array<int> values(1);
  event e;
  CHECK(e.ready());
  values.fill_zero(s);
  e.record(s);
  int questions = 1;
  while (!e.ready()) ++questions;
  CHECK(questions > 1);
  event later;
  later.record(s);
  later.synchronize();
  CHECK_THAT(error_of([&] { event::elapsed_ms(e, later); }), ContainsSubstring("not timed"));
}

TEST_CASE("timed events say how long the work between them took") {
  stream s;
  device_array<int> values(1);
  event from(true), to(true);
  from.record(s);
  values.fill_zero(s);
  to.record(s);
  s.synchronize();
  CHECK(event::elapsed_ms(from, to) > 0);
}

TEST_CASE("a graph replays what was captured, on the values of its launch") {
  stream s;
  device_array<int> values(2);
  pinned_array<int> input(2);
  graph g = capture(s, [&] {
    values.upload(s, input.span());
    launch(s, {dim3(1), dim3(2)}, add, values.data(), 1);
  });
  g.instantiate();
  input[0] = 10;
  input[1] = 20;
  g.launch(s);
  CHECK(downloaded(s, values) == std::vector<int>{11, 21});
  input[0] = 30;
  g.launch(s);
  launch(s, {dim3(1), dim3(2)}, add, values.data(), 5);
  CHECK(downloaded(s, values) == std::vector<int>{36, 26});
}

TEST_CASE("what a capture cannot hold is refused in it") {
  stream s;
  device_array<int> values(1);
  std::vector<int> pageable{1};
  const auto refusal = [&](auto body) { return error_of([&] { capture(s, body); }); };
  CHECK_THAT(refusal([&] { s.synchronize(); }), ContainsSubstring("capturing"));
  CHECK_THAT(refusal([&] { values.upload(s, pageable); }), ContainsSubstring("not pinned"));
  CHECK_THAT(refusal([&] { device_array<int> more(1); }), ContainsSubstring("captures a graph"));
  CHECK(refusal([] {}).empty());
}

TEST_CASE("memory is limited, accounted for and given back") {
  const auto before = device_memory();
  {
    device_array<char> some(1000);
    CHECK(device_memory().free_bytes == before.free_bytes - 1000);
    device_array<char> moved = std::move(some);
    CHECK(device_memory().free_bytes == before.free_bytes - 1000);
  }
  CHECK(device_memory().free_bytes == before.free_bytes);
  CHECK_THAT(error_of([&] { device_array<char> all(before.total_bytes + 1); }),
             ContainsSubstring("out of memory"));
  CHECK_THAT(error_of([] { set_device(99); }), ContainsSubstring("devices are 0 to 1"));
}

TEST_CASE("an error within a kernel comes from synchronize, once, and what follows is dropped") {
  stream s;
  device_array<int> values(4);
  values.fill_zero(s);
  launch(s, {dim3(1), dim3(5)}, add, values.data(), 1);
  launch(s, {dim3(1), dim3(4)}, add, values.data(), 1);
  CHECK_THAT(error_of([&] { s.synchronize(); }), ContainsSubstring("thread (4, 0, 0)"));
  CHECK(error_of([&] { s.synchronize(); }).empty());
  values.fill_zero(s);
  CHECK(downloaded(s, values) == std::vector<int>(4, 0));
}

TEST_CASE("kernels of two devices, each with a thread of its own, can wait for each other") {
  device_array<int> flags(2);
  stream clear;
  flags.fill_zero(clear);
  clear.synchronize();
  const auto rank = [&](int mine) {
    set_device(mine);
    stream s;
    launch(s, {dim3(2), dim3(32), 0, true}, wait_for_flag, flags.data(), mine, 1 - mine);
    s.synchronize();
  };
  std::thread other([&] { rank(1); });
  rank(0);
  other.join();
  CHECK(downloaded(clear, flags) == std::vector<int>{1, 1});
}

TEST_CASE("work on memory that was freed meanwhile is an error") {
  stream s;
  std::vector<int> host(4);
  {
    device_array<int> values(4);
    values.download(s, host);
  }
  CHECK_THAT(error_of([&] { s.synchronize(); }), ContainsSubstring("no live device allocation"));
}

TEST_CASE("more is not copied than an array holds") {
  stream s;
  device_array<int> values(2);
  std::vector<int> host(3);
  CHECK_THAT(error_of([&] { values.upload(s, host); }), ContainsSubstring("3 elements"));
  CHECK_THAT(error_of([&] { values.download(s, host); }), ContainsSubstring("array of 2"));
}

}  // namespace
}  // namespace octavo::gpu
