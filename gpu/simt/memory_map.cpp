// Live allocations of the emulated devices.
#include "gpu/simt/memory_map.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

#include "gpu/runtime/device_error.hpp"

namespace octavo::gpu::simt {
namespace {

constexpr std::size_t alignment = 256;  // what cudaMalloc promises
constexpr std::size_t guard_bytes = 256;
constexpr unsigned char guard_value = 0xa5;
constexpr int pinned_device = -1;

/// One bit a byte; set from several OS threads.
class byte_set {
 public:
  explicit byte_set(std::size_t bytes)
      : words_(std::make_unique<std::atomic<std::uint64_t>[]>(bytes / 64 + 1)),
        count_(bytes / 64 + 1) {}

  void add(std::size_t first, std::size_t bytes) {
    for (std::size_t i = first; i < first + bytes; ++i) {
      words_[i / 64].fetch_or(std::uint64_t{1} << (i % 64), std::memory_order_relaxed);
    }
  }

  std::size_t size() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < count_; ++i) n += std::popcount(words_[i].load());
    return n;
  }

 private:
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::size_t count_;
};

struct allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  int device = 0;
  std::unique_ptr<byte_set> read;
  std::unique_ptr<byte_set> written;
};

struct map_state {
  std::shared_mutex mutex;
  std::map<std::uintptr_t, std::shared_ptr<allocation>> live;
  std::vector<std::size_t> used = std::vector<std::size_t>(2, 0);
  std::size_t bytes_each = std::size_t{1} << 30;
  std::atomic<std::uint64_t> generation{1};
};

map_state& state() {
  static map_state s;
  return s;
}

/// The allocation that holds `address`, or null; valid until this OS thread asks
/// again. Asked at every access to global memory, so the last answers are kept.
allocation* find(std::uintptr_t address) {
  auto& s = state();
  struct remembered {
    std::uint64_t generation = 0;
    std::size_t next = 0;
    std::array<std::shared_ptr<allocation>, 8> recent;
  };
  static thread_local remembered memory;
  const auto generation = s.generation.load(std::memory_order_acquire);
  if (memory.generation != generation) memory = {.generation = generation, .next = 0, .recent = {}};
  for (const auto& a : memory.recent) {
    if (a != nullptr && address - a->begin < a->bytes) return a.get();
  }
  const std::shared_lock lock(s.mutex);
  auto after = s.live.upper_bound(address);
  if (after == s.live.begin()) return nullptr;
  const auto& candidate = std::prev(after)->second;
  if (address - candidate->begin >= candidate->bytes) return nullptr;
  memory.recent[memory.next++ % memory.recent.size()] = candidate;
  return candidate.get();
}

void* allocate(std::size_t bytes, int device) {
  auto& s = state();
  auto* address = static_cast<unsigned char*>(
      ::operator new (bytes + guard_bytes, std::align_val_t{alignment}));
  std::memset(address, 0xff, bytes);
  std::memset(address + bytes, guard_value, guard_bytes);
  auto a = std::make_shared<allocation>();
  a->begin = reinterpret_cast<std::uintptr_t>(address);
  a->bytes = bytes;
  a->device = device;
  const std::unique_lock lock(s.mutex);
  s.live.emplace(a->begin, std::move(a));
  ++s.generation;
  return address;
}

/// Forgets an allocation and returns what it was.
std::shared_ptr<allocation> release(void* address) {
  auto& s = state();
  std::shared_ptr<allocation> a;
  {
    const std::unique_lock lock(s.mutex);
    const auto it = s.live.find(reinterpret_cast<std::uintptr_t>(address));
    a = std::move(it->second);
    s.live.erase(it);
    if (a->device != pinned_device) s.used[static_cast<std::size_t>(a->device)] -= a->bytes;
    ++s.generation;
  }
  ::operator delete (address, std::align_val_t{alignment});
  return a;
}

}  // namespace

void* allocate_device(std::size_t bytes, int device) {
  auto& s = state();
  {
    const std::unique_lock lock(s.mutex);
    auto& used = s.used.at(static_cast<std::size_t>(device));
    if (bytes > s.bytes_each - std::min(used, s.bytes_each)) {
      throw device_error("allocate", device,
                         "out of memory: " + std::to_string(bytes) + " bytes asked for, " +
                             std::to_string(s.bytes_each - used) + " of " +
                             std::to_string(s.bytes_each) + " free",
                         "use a smaller model or fewer KV pages");
    }
    used += bytes;
  }
  return allocate(bytes, device);
}

void free_device(void* address) {
  release(address);
}

void* allocate_pinned(std::size_t bytes) {
  return allocate(bytes, pinned_device);
}

void free_pinned(void* address) {
  release(address);
}

bool is_pinned(const void* address, std::size_t bytes) {
  const auto p = reinterpret_cast<std::uintptr_t>(address);
  const auto a = find(p);
  return a != nullptr && a->device == pinned_device && p - a->begin + bytes <= a->bytes;
}

std::string range_problem(const void* address, std::size_t bytes) {
  const auto p = reinterpret_cast<std::uintptr_t>(address);
  const auto a = find(p);
  if (a == nullptr) return "the address lies in no live device allocation";
  const auto offset = p - a->begin;
  if (offset + bytes <= a->bytes) return "";
  return std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
         " reach past the end of an allocation of " + std::to_string(a->bytes);
}

std::size_t allocated_bytes(int device) {
  auto& s = state();
  const std::shared_lock lock(s.mutex);
  return s.used.at(static_cast<std::size_t>(device));
}

void set_devices(int count, std::size_t bytes_each) {
  auto& s = state();
  const std::unique_lock lock(s.mutex);
  s.used.resize(static_cast<std::size_t>(count), 0);
  s.bytes_each = bytes_each;
}

int device_count() {
  auto& s = state();
  const std::shared_lock lock(s.mutex);
  return static_cast<int>(s.used.size());
}

std::size_t device_bytes() {
  auto& s = state();
  const std::shared_lock lock(s.mutex);
  return s.bytes_each;
}

std::string overrun_problem() {
  static const std::vector<unsigned char> intact(guard_bytes, guard_value);
  auto& s = state();
  const std::shared_lock lock(s.mutex);
  for (const auto& [begin, a] : s.live) {
    auto* guard = reinterpret_cast<unsigned char*>(begin) + a->bytes;
    if (std::memcmp(guard, intact.data(), guard_bytes) == 0) continue;
    std::memset(guard, guard_value, guard_bytes);
    return "an allocation of " + std::to_string(a->bytes) + " bytes was written past its end";
  }
  return "";
}

void add_distinct_bytes(counts& total) {
  auto& s = state();
  const std::shared_lock lock(s.mutex);
  for (const auto& [begin, a] : s.live) {
    if (a->read) total.distinct_bytes_read += a->read->size();
    if (a->written) total.distinct_bytes_written += a->written->size();
  }
}

void forget_distinct_bytes() {
  auto& s = state();
  const std::unique_lock lock(s.mutex);
  for (const auto& [begin, a] : s.live) {
    a->read.reset();
    a->written.reset();
  }
}

void note_touched(const void* address, std::size_t bytes, bool written) {
  const auto p = reinterpret_cast<std::uintptr_t>(address);
  const auto a = find(p);
  if (a == nullptr) return;
  auto& set = written ? a->written : a->read;
  if (set == nullptr) {
    const std::unique_lock lock(state().mutex);
    if (set == nullptr) set = std::make_unique<byte_set>(a->bytes);
  }
  set->add(p - a->begin, bytes);
}

}  // namespace octavo::gpu::simt
