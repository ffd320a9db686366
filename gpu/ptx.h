// Every instruction that C++ has no word for: a wrapper in inline PTX for devices
// and beside it the emulator's twin. No other file holds inline assembly. Names and
// fragment layouts follow the PTX ISA.
#pragma once

#include <cstring>

#include "gpu/cuda.hpp"

#if defined(__CUDACC__)
#define OCTAVO_DEVICE __device__ __forceinline__
#else
#define OCTAVO_DEVICE inline
#endif

namespace octavo::gpu {

// ---- bits --------------------------------------------------------------------

/// The bits of a value as another type of the same size. Not of what lies in memory: a
/// device would read that byte by byte, for a copy promises no alignment.
template <class To, class From>
OCTAVO_DEVICE To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof(To));
  return to;
}

/// Any function of three bits, for each bit: `table` is the function's result for
/// a = 0xf0, b = 0xcc, c = 0xaa, e.g. (0xf0 & 0xcc) | 0xaa for (a & b) | c.
template <int table>
OCTAVO_DEVICE std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if defined(__CUDACC__)
  std::uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(table));
  return d;
#else
  std::uint32_t d = 0;
  for (int row = 0; row < 8; ++row) {
    if ((table >> row & 1) == 0) continue;
    d |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
  }
  return d;
#endif
}

/// 2^x to within 2 units in the last place; subnormal results are zero on devices.
OCTAVO_DEVICE float exp2_approximate(float x) {
#if defined(__CUDACC__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}

// ---- global memory -----------------------------------------------------------

namespace detail {

/// The register type that moves `bytes` at once.
template <std::size_t bytes>
struct word;
template <>
struct word<1> {
  using type = unsigned char;
};
template <>
struct word<2> {
  using type = unsigned short;
};
template <>
struct word<4> {
  using type = unsigned int;
};
template <>
struct word<8> {
  using type = uint2;
};
template <>
struct word<16> {
  using type = uint4;
};
template <class T>
using word_of = typename word<sizeof(T)>::type;

}  // namespace detail

/// Reads a T of 1, 2, 4, 8 or 16 bytes in one access; the address must be a
/// multiple of the size.
template <class T>
OCTAVO_DEVICE T load_global(const T* address) {
  using word = detail::word_of<T>;
#if !defined(__CUDACC__)
  simt::check_global_read(address, sizeof(T));
#endif
  const word read = *reinterpret_cast<const word*>(address);
  return bits_as<T>(read);
}

/// As load_global, for what is read once: it takes no room in L1 and leaves L2 first.
/// What it reads must not be written by the same launch.
template <class T>
OCTAVO_DEVICE T load_global_streaming(const T* address) {
  using word = detail::word_of<T>;
#if defined(__CUDACC__)
  if constexpr (sizeof(T) == 16) {
    word w;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
                 : "l"(__cvta_generic_to_global(address)));
    return bits_as<T>(w);
  } else {
    return bits_as<T>(__ldcs(reinterpret_cast<const word*>(address)));
  }
#else
  simt::check_global_read(address, sizeof(T));
  return bits_as<T>(*reinterpret_cast<const word*>(address));
#endif
}

/// Writes a T of 1, 2, 4, 8 or 16 bytes in one access.
template <class T>
OCTAVO_DEVICE void store_global(T* address, const T& value) {
  using word = detail::word_of<T>;
#if !defined(__CUDACC__)
  simt::check_global_write(address, sizeof(T));
#endif
  *reinterpret_cast<word*>(address) = bits_as<word>(value);
}

// ---- flags between blocks and devices ----------------------------------------

/// Reads a flag; what its writer stored before store_release is visible after.
OCTAVO_DEVICE int load_acquire(const int* address) {
  int value;
#if defined(__CUDACC__)
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
#else
  simt::check_global_read(address, sizeof(int));
  __atomic_load(address, &value, __ATOMIC_ACQUIRE);
#endif
  return value;
}

OCTAVO_DEVICE void store_release(int* address, int value) {
#if defined(__CUDACC__)
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)),
               "r"(value)
               : "memory");
#else
  simt::check_global_write(address, sizeof(int));
  __atomic_store(address, &value, __ATOMIC_RELEASE);
#endif
}

/// As load_acquire and store_release, between devices and the host.
OCTAVO_DEVICE int load_acquire_system(const int* address) {
#if defined(__CUDACC__)
  int value;
  asm volatile("ld.acquire.sys.global.s32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return value;
#else
  return load_acquire(address);
#endif
}

OCTAVO_DEVICE void store_release_system(int* address, int value) {
#if defined(__CUDACC__)
  asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)),
               "r"(value)
               : "memory");
#else
  store_release(address, value);
#endif
}

/// Belongs into every loop that waits for a flag.
OCTAVO_DEVICE void spin_pause() {
#if defined(__CUDACC__)
  __nanosleep(32);
#else
  simt::spin_pause();
#endif
}

/// Nanoseconds by a clock that goes on while a thread waits; its steps may be microseconds.
/// The emulator, which limits waits itself, has none.
OCTAVO_DEVICE std::uint64_t clock_ns() {
#if defined(__CUDACC__)
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return 0;
#endif
}

/// Meets `threads` threads of the block (a multiple of 32) at barrier `id`, 1 to 15.
OCTAVO_DEVICE void named_barrier_sync(int id, int threads) {
#if defined(__CUDACC__)
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  simt::named_barrier(static_cast<unsigned>(id), static_cast<unsigned>(threads), true);
#endif
}

/// As named_barrier_sync, without waiting.
OCTAVO_DEVICE void named_barrier_arrive(int id, int threads) {
#if defined(__CUDACC__)
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  simt::named_barrier(static_cast<unsigned>(id), static_cast<unsigned>(threads), false);
#endif
}

// ---- shared memory -----------------------------------------------------------

#if defined(__CUDACC__)
OCTAVO_DEVICE std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
#endif

/// Reads a T of 1, 2, 4, 8 or 16 bytes from shared memory; the emulator checks its
/// range and counts bank conflicts.
template <class T>
OCTAVO_DEVICE T load_shared(const T* address) {
  using word = detail::word_of<T>;
#if !defined(__CUDACC__)
  simt::check_shared(address, sizeof(T), "load from shared memory");
  simt::note_shared_access(address, sizeof(T));
#endif
  const word read = *reinterpret_cast<const word*>(address);
  return bits_as<T>(read);
}

template <class T>
OCTAVO_DEVICE void store_shared(T* address, const T& value) {
  using word = detail::word_of<T>;
#if !defined(__CUDACC__)
  simt::check_shared(address, sizeof(T), "store to shared memory");
  simt::note_shared_access(address, sizeof(T));
#endif
  *reinterpret_cast<word*>(address) = bits_as<word>(value);
}

/// Starts to copy 16 bytes past the registers; both addresses multiples of 16.
OCTAVO_DEVICE void cp_async16(void* shared, const void* global) {
#if defined(__CUDACC__)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global))
               : "memory");
#else
  simt::copy_async(shared, global);
#endif
}

/// As cp_async16 where `inside`; else 16 zeros, and `global` is not read.
OCTAVO_DEVICE void cp_async16_or_zero(void* shared, const void* global, bool inside) {
#if defined(__CUDACC__)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(inside ? 16 : 0)
               : "memory");
#else
  simt::copy_async(shared, inside ? global : nullptr);
#endif
}

/// Makes one group of this thread's copies since the last commit.
OCTAVO_DEVICE void cp_async_commit() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  simt::copy_async_commit();
#endif
}

/// Waits until at most `pending` of this thread's newest groups are under way. Other
/// threads see the copies after a barrier that follows.
template <int pending>
OCTAVO_DEVICE void cp_async_wait() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#else
  simt::copy_async_wait(pending);
#endif
}

/// Loads four 8 x 8 matrices of 16-bit elements: lane 8 i + r gives the address of
/// row r of matrix i (16 bytes, aligned), and lane 4 r + c gets elements 2 c and
/// 2 c + 1 of row r of matrix i in registers[i], the fragments of mma_16x8x16.
OCTAVO_DEVICE void ldmatrix_x4(std::uint32_t (&registers)[4], const void* row) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(shared_address(row))
               : "memory");
#else
  simt::ldmatrix(4, false, registers, row);
#endif
}

/// As ldmatrix_x4, each matrix transposed: lane 4 r + c gets rows 2 c and 2 c + 1 of column r.
OCTAVO_DEVICE void ldmatrix_x4_trans(std::uint32_t (&registers)[4], const void* row) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(shared_address(row))
               : "memory");
#else
  simt::ldmatrix(4, true, registers, row);
#endif
}

/// As ldmatrix_x4 for two matrices; addresses come from lanes 0 to 15.
OCTAVO_DEVICE void ldmatrix_x2(std::uint32_t (&registers)[2], const void* row) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(registers[0]), "=r"(registers[1])
               : "r"(shared_address(row))
               : "memory");
#else
  simt::ldmatrix(2, false, registers, row);
#endif
}

OCTAVO_DEVICE void ldmatrix_x2_trans(std::uint32_t (&registers)[2], const void* row) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(registers[0]), "=r"(registers[1])
               : "r"(shared_address(row))
               : "memory");
#else
  simt::ldmatrix(2, true, registers, row);
#endif
}

// ---- tensor cores ------------------------------------------------------------

/// d (16 x 8, fp32) += a (16 x 16) * b (16 x 8), elements of type T in {__half,
/// __nv_bfloat16}, two in a register, the lower index in the lower half. Of lane
/// 4 g + t:
///   a[0] row g, columns 2 t, 2 t + 1;  a[1] row g + 8;  a[2], a[3] the same, columns + 8
///   b[0] rows 2 t, 2 t + 1 of column g;  b[1] rows + 8
///   d[0], d[1] row g, columns 2 t, 2 t + 1;  d[2], d[3] row g + 8
template <class T>
OCTAVO_DEVICE void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4],
                               const std::uint32_t (&b)[2]);

template <>
OCTAVO_DEVICE void mma_16x8x16<__half>(float (&d)[4], const std::uint32_t (&a)[4],
                                       const std::uint32_t (&b)[2]) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simt::multiply_16x8x16(simt::fragment::float16, d, a, b);
#endif
}

template <>
OCTAVO_DEVICE void mma_16x8x16<__nv_bfloat16>(float (&d)[4], const std::uint32_t (&a)[4],
                                              const std::uint32_t (&b)[2]) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simt::multiply_16x8x16(simt::fragment::bfloat16, d, a, b);
#endif
}

/// The same on fragments typed by their elements.
OCTAVO_DEVICE void mma_16x8x16(float (&d)[4], const __half2 (&a)[4], const __half2 (&b)[2]) {
  const std::uint32_t x[4] = {bits_as<std::uint32_t>(a[0]), bits_as<std::uint32_t>(a[1]),
                              bits_as<std::uint32_t>(a[2]), bits_as<std::uint32_t>(a[3])};
  const std::uint32_t y[2] = {bits_as<std::uint32_t>(b[0]), bits_as<std::uint32_t>(b[1])};
  mma_16x8x16<__half>(d, x, y);
}

OCTAVO_DEVICE void mma_16x8x16(float (&d)[4], const __nv_bfloat162 (&a)[4],
                               const __nv_bfloat162 (&b)[2]) {
  const std::uint32_t x[4] = {bits_as<std::uint32_t>(a[0]), bits_as<std::uint32_t>(a[1]),
                              bits_as<std::uint32_t>(a[2]), bits_as<std::uint32_t>(a[3])};
  const std::uint32_t y[2] = {bits_as<std::uint32_t>(b[0]), bits_as<std::uint32_t>(b[1])};
  mma_16x8x16<__nv_bfloat16>(d, x, y);
}

/// Whether this compilation has fp8 tensor cores (sm_89 on; the emulator has).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
inline constexpr bool has_fp8_mma = false;
#else
inline constexpr bool has_fp8_mma = true;
#endif

/// d (16 x 8, fp32) += a (16 x 32) * b (32 x 8), elements e4m3, four in a register.
/// Of lane 4 g + t:
///   a[0] row g, columns 4 t to 4 t + 3;  a[1] row g + 8;  a[2], a[3] the same, columns + 16
///   b[0] rows 4 t to 4 t + 3 of column g;  b[1] rows + 16;  d as mma_16x8x16
/// Stops the kernel where has_fp8_mma is false.
OCTAVO_DEVICE void mma_16x8x32(float (&d)[4], const std::uint32_t (&a)[4],
                               const std::uint32_t (&b)[2]) {
#if !defined(__CUDACC__)
  simt::multiply_16x8x32_e4m3(d, a, b);
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();
#endif
}

}  // namespace octavo::gpu
