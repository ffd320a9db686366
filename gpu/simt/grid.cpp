// Launches: checks of their shape, and the spreading of blocks over OS threads.
#include "gpu/simt/grid.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/runtime/device_error.hpp"
#include "gpu/simt/memory_map.hpp"

namespace octavo::gpu::simt {
namespace {

constexpr std::size_t shared_bytes_max = 99 << 10;  // sm_89; others have more
constexpr std::uint64_t fibers_max = 65536;         // of a cooperative launch

std::mutex total_mutex;
counts total;

void refuse(const grid_work& work, const std::string& problem) {
  throw device_error("launch of " + work.kernel, work.device, problem, "");
}

/// Gangs that are not running: they keep their fibers' stacks for the next launch.
class gang_pool {
 public:
  std::unique_ptr<gang> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<gang>();
    auto g = std::move(idle_.back());
    idle_.pop_back();
    return g;
  }

  void put_back(std::unique_ptr<gang> g) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(g));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<gang>> idle_;
};

gang_pool& pool() {
  static gang_pool p;
  return p;
}

void merge(gang& g) {
  const std::lock_guard lock(total_mutex);
  total += std::exchange(g.tally, {});
}

/// Takes blocks until none is left; the first failure stops all.
class spread {
 public:
  spread(const grid_work& work, const options& how)
      : work_(work), how_(how), blocks_(work.grid.x * work.grid.y * work.grid.z) {}

  void run() {
    const int threads = work_.cooperative ? 1 : how_.threads;
    std::vector<std::thread> helpers;
    for (int i = 1; i < threads && i < static_cast<int>(blocks_); ++i) {
      helpers.emplace_back([this] { take_blocks(); });
    }
    take_blocks();
    for (auto& h : helpers) h.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void take_blocks() {
    auto g = pool().take();
    const unsigned count = work_.cooperative ? blocks_ : 1;
    try {
      for (unsigned i = 0; (i = next_.fetch_add(count)) < blocks_;) {
        const bool backwards = how_.order == thread_order::lifo && count == 1;
        g->run(work_, how_, backwards ? blocks_ - 1 - i : i, count);
      }
    } catch (...) {
      next_ = blocks_;
      const std::lock_guard lock(total_mutex);
      if (!failure_) failure_ = std::current_exception();
    }
    merge(*g);
    pool().put_back(std::move(g));
  }

  const grid_work& work_;
  const options& how_;
  unsigned blocks_;
  std::atomic<unsigned> next_{0};
  std::exception_ptr failure_;
};

}  // namespace

void check_shape(const grid_work& work) {
  const auto& [grid, block] = std::pair(work.grid, work.block);
  const auto threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64) {
    refuse(work, "a block of " + std::to_string(threads) + " threads; allowed are 1 to 1024");
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffU || grid.y > 65535 ||
      grid.z > 65535) {
    std::ostringstream shape;
    shape << "a grid of " << grid.x << " x " << grid.y << " x " << grid.z
          << " blocks; allowed are 1 to 2147483647 x 65535 x 65535";
    refuse(work, shape.str());
  }
  if (work.shared_bytes > shared_bytes_max) {
    refuse(work, std::to_string(work.shared_bytes) + " bytes of shared memory; sm_89 has " +
                     std::to_string(shared_bytes_max));
  }
  const auto blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  if (work.cooperative && blocks * threads > fibers_max) {
    refuse(work, "a cooperative launch of " + std::to_string(blocks * threads) +
                     " threads; the emulator runs " + std::to_string(fibers_max) + " side by side");
  }
}

options& current_options() {
  static options o = [] {
    options first;
    if (const char* threads = std::getenv("OCTAVO_SIMT_THREADS")) {
      first.threads = std::max(1, std::atoi(threads));
    }
    return first;
  }();
  return o;
}

counts& counts::operator+=(const counts& o) {
  launches += o.launches;
  blocks += o.blocks;
  barriers += o.barriers;
  collectives += o.collectives;
  matrix_products += o.matrix_products;
  global_bytes_read += o.global_bytes_read;
  global_bytes_written += o.global_bytes_written;
  global_atomics += o.global_atomics;
  distinct_bytes_read += o.distinct_bytes_read;
  distinct_bytes_written += o.distinct_bytes_written;
  shared_wavefronts += o.shared_wavefronts;
  bank_conflicts += o.bank_conflicts;
  return *this;
}

counts counters() {
  counts all;
  {
    const std::lock_guard lock(total_mutex);
    all = total;
  }
  add_distinct_bytes(all);
  return all;
}

void reset_counters() {
  const std::lock_guard lock(total_mutex);
  total = {};
  forget_distinct_bytes();
}

void run_grid(const grid_work& work) {
  const options how = current_options();
  spread(work, how).run();
  const auto overrun = overrun_problem();
  if (!overrun.empty()) {
    throw device_error(work.kernel, work.device, overrun, "a plain store in this kernel did it");
  }
  const std::lock_guard lock(total_mutex);
  ++total.launches;
}

std::string kernel_name(const void* kernel) {
  Dl_info info{};
  if (dladdr(kernel, &info) == 0 || info.dli_sname == nullptr) {
    std::ostringstream text;
    text << "kernel at " << kernel;
    return text.str();
  }
  int status = 0;
  char* plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::string name = status == 0 ? plain : info.dli_sname;
  std::free(plain);
  // What precedes the parameters says enough.
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0 && name.compare(i, 11, "(anonymous ") != 0) {
      name.resize(i);
    }
  }
  return name;
}

}  // namespace octavo::gpu::simt
