// Ranks of an all-reduce in one process, for tests.
#pragma once

#include <exception>
#include <thread>
#include <vector>

#include "gpu/kernels/all_reduce/all_reduce.hpp"
#include "gpu/runtime/memory.hpp"

namespace octavo::gpu {

/// The ranks' shared memory, zero.
class test_ranks {
 public:
  test_ranks(int ranks, int blocks, std::size_t payload_bytes) {
    group_.ranks = ranks;
    group_.blocks = blocks;
    group_.payload_bytes = payload_bytes;
    stream s;
    for (int r = 0; r < ranks; ++r) {
      memory_.emplace_back(peer_memory_bytes(payload_bytes));
      memory_.back().fill_zero(s);
      group_.memory[r] = memory_.back().data();
    }
    s.synchronize();
  }

  [[nodiscard]] peer_group of(int rank) const {
    peer_group g = group_;
    g.rank = rank;
    return g;
  }

  /// Calls body(group) for each rank on a thread of its own; the first error is thrown.
  template <class Body>
  void run(Body body) const {
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(group_.ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < group_.ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(of(rank));
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& t : threads) t.join();
    for (const auto& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  peer_group group_;
  std::vector<device_array<unsigned char>> memory_;
};

}  // namespace octavo::gpu
