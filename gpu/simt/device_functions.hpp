// CUDA's barriers, warp functions and atomics for the emulator, by their own names
// in the global namespace. Included by gpu/cuda.hpp only.
#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

#include "gpu/simt/thread_api.hpp"

// NOLINTBEGIN: the names are CUDA's.
inline constexpr int warpSize = 32;

inline void __syncthreads() {
  octavo::gpu::simt::block_barrier();
}

inline int __syncthreads_count(int predicate) {
  return octavo::gpu::simt::block_barrier(predicate).nonzero;
}

inline int __syncthreads_or(int predicate) {
  return octavo::gpu::simt::block_barrier(predicate).nonzero != 0;
}

inline int __syncthreads_and(int predicate) {
  const auto met = octavo::gpu::simt::block_barrier(predicate);
  return met.nonzero == met.threads;
}

inline void __syncwarp(unsigned mask = octavo::gpu::simt::full_mask) {
  octavo::gpu::simt::warp_barrier(mask);
}

inline void __threadfence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline void __threadfence_block() {
  __threadfence();
}
inline void __threadfence_system() {
  __threadfence();
}

namespace octavo::gpu::simt {

template <class T>
T shuffle_value(unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle(mask, bits, source);
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return value;
}

/// `source` where it is in the calling lane's segment of `width` lanes, else the lane itself.
inline unsigned within_segment(int source, int width) {
  const int lane = static_cast<int>(current_lane());
  return static_cast<unsigned>(source / width == lane / width && source >= 0 ? source : lane);
}

}  // namespace octavo::gpu::simt

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int first = static_cast<int>(octavo::gpu::simt::current_lane()) & ~(width - 1);
  return octavo::gpu::simt::shuffle_value(mask, value,
                                          static_cast<unsigned>(first | (source & (width - 1))));
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  namespace simt = octavo::gpu::simt;
  const int source = static_cast<int>(simt::current_lane()) - static_cast<int>(delta);
  return simt::shuffle_value(mask, value, simt::within_segment(source, width));
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  namespace simt = octavo::gpu::simt;
  const int source = static_cast<int>(simt::current_lane()) + static_cast<int>(delta);
  return simt::shuffle_value(mask, value, simt::within_segment(source, width));
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize) {
  namespace simt = octavo::gpu::simt;
  const int lane = static_cast<int>(simt::current_lane());
  const int source = lane ^ lane_mask;
  // Segments before the lane's own can be read; those after cannot.
  const bool readable = source / width <= lane / width;
  return simt::shuffle_value(mask, value, static_cast<unsigned>(readable ? source : lane));
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return octavo::gpu::simt::ballot(mask, predicate != 0);
}

inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}

inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate == 0) == 0;
}

template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return octavo::gpu::simt::match_any(mask, bits);
}

namespace octavo::gpu::simt {

/// All lanes' values reduced with `combine`, in lane order.
template <class T, class Combine>
T reduce_lanes(unsigned mask, T value, Combine combine) {
  const unsigned present = ballot(mask, true);
  T result = shuffle_value(mask, value, static_cast<unsigned>(std::countr_zero(present)));
  for (unsigned rest = present & (present - 1); rest != 0; rest &= rest - 1) {
    result =
        combine(result, shuffle_value(mask, value, static_cast<unsigned>(std::countr_zero(rest))));
  }
  return result;
}

}  // namespace octavo::gpu::simt

template <class T>
T __reduce_add_sync(unsigned mask, T value) {
  return octavo::gpu::simt::reduce_lanes(mask, value, [](T a, T b) { return a + b; });
}

template <class T>
T __reduce_max_sync(unsigned mask, T value) {
  return octavo::gpu::simt::reduce_lanes(mask, value, [](T a, T b) { return a > b ? a : b; });
}

template <class T>
T __reduce_min_sync(unsigned mask, T value) {
  return octavo::gpu::simt::reduce_lanes(mask, value, [](T a, T b) { return a < b ? a : b; });
}

namespace octavo::gpu::simt {

/// Replaces *address by change(*address) in one piece and returns the former value.
template <class T, class Change>
T atomic_change(T* address, Change change) {
  check_atomic(address, sizeof(T));
  T former;
  __atomic_load(address, &former, __ATOMIC_RELAXED);
  T next = change(former);
  while (!__atomic_compare_exchange(address, &former, &next, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
    next = change(former);
  }
  return former;
}

}  // namespace octavo::gpu::simt

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address, [&](T old) { return T(old + value); });
}

template <class T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address, [&](T old) { return T(old - value); });
}

template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address,
                                          [&](T old) { return old > value ? old : value; });
}

template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address,
                                          [&](T old) { return old < value ? old : value; });
}

template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address, [&](T old) { return T(old | value); });
}

template <class T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address, [&](T old) { return T(old & value); });
}

template <class T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address, [&](T old) { return T(old ^ value); });
}

template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address, [&](T) { return value; });
}

template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return octavo::gpu::simt::atomic_change(address,
                                          [&](T old) { return old == expected ? value : old; });
}

/// Counts up to `limit` and then starts again at zero.
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return octavo::gpu::simt::atomic_change(
      address, [&](unsigned old) { return old >= limit ? 0U : old + 1; });
}
// NOLINTEND
