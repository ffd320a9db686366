// Switches between contexts, by assembly or ucontext, and maps their stacks.
#include "gpu/simt/context.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(OCTAVO_SIMT_PORTABLE)
// Saves the registers that a call preserves on the old stack, and takes them
// from the new one. Floating-point control words stay as they are.
extern "C" void octavo_simt_switch(void** from, void* to);
asm(R"(
  .text
  .globl octavo_simt_switch
  .hidden octavo_simt_switch
  .type octavo_simt_switch, @function
octavo_simt_switch:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size octavo_simt_switch, . - octavo_simt_switch
)");
#endif

namespace octavo::gpu::simt {
namespace {

constexpr std::size_t page_bytes = 4096;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t stack_bytes = 256 << 10;
#else
constexpr std::size_t stack_bytes = 64 << 10;
#endif

void swap_registers(context& from, context& to) {
#if defined(OCTAVO_SIMT_PORTABLE)
  swapcontext(&from.registers, &to.registers);
#else
  octavo_simt_switch(&from.stack_pointer, to.stack_pointer);
#endif
}

}  // namespace

void make_context(context& c, void (*entry)()) {
#if defined(__SANITIZE_ADDRESS__)
  // An abandoned run of this fiber leaves its frames' red zones behind.
  __asan_unpoison_memory_region(c.stack_low, c.stack_bytes);
  c.sanitizer_fiber = nullptr;
#elif defined(__SANITIZE_THREAD__)
  discard_context(c);
  c.sanitizer_fiber = __tsan_create_fiber(0);
#endif
#if defined(OCTAVO_SIMT_PORTABLE)
  getcontext(&c.registers);
  c.registers.uc_stack.ss_sp = c.stack_low;
  c.registers.uc_stack.ss_size = c.stack_bytes;
  c.registers.uc_link = nullptr;
  makecontext(&c.registers, entry, 0);
#else
  constexpr int saved_registers = 6;
  const auto high = reinterpret_cast<std::uintptr_t>(c.stack_low + c.stack_bytes);
  auto* top = reinterpret_cast<void**>(high & ~std::uintptr_t{15});
  // At a function's first instruction the stack is 8 short of a multiple of 16.
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < saved_registers; ++i) *--top = nullptr;
  c.stack_pointer = top;
#endif
}

void adopt_thread(context& c) {
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  void* low = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &c.stack_bytes);
  pthread_attr_destroy(&attributes);
  c.stack_low = static_cast<char*>(low);
#elif defined(__SANITIZE_THREAD__)
  c.sanitizer_fiber = __tsan_get_current_fiber();
#else
  (void)c;
#endif
}

void switch_context(context& from, context& to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.sanitizer_fiber, to.stack_low, to.stack_bytes);
  swap_registers(from, to);
  __sanitizer_finish_switch_fiber(from.sanitizer_fiber, nullptr, nullptr);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.sanitizer_fiber, 0);
  swap_registers(from, to);
#else
  swap_registers(from, to);
#endif
}

void context_entered() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

void discard_context(context& c) {
#if defined(__SANITIZE_THREAD__)
  if (c.sanitizer_fiber != nullptr) __tsan_destroy_fiber(c.sanitizer_fiber);
  c.sanitizer_fiber = nullptr;
#elif defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(c.stack_low, c.stack_bytes);
#else
  (void)c;
#endif
}

stack_pool::~stack_pool() {
  for (const auto& m : mappings_) munmap(m.address, m.bytes);
}

std::vector<stack_pool::stack> stack_pool::grow(std::size_t count) {
  // One page more for staggering: stacks that begin at equal offsets within a
  // page would compete for the same few cache sets.
  constexpr std::size_t stride = page_bytes + stack_bytes + page_bytes;
  const std::size_t bytes = count * stride;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  mappings_.push_back({address, bytes});
  std::vector<stack> stacks;
  for (std::size_t i = 0; i < count; ++i) {
    char* guard = static_cast<char*>(address) + i * stride;
    if (mprotect(guard, page_bytes, PROT_NONE) != 0) throw std::bad_alloc();
    const std::size_t stagger = i * 9 % 61 * 64;
    stacks.push_back({guard + page_bytes, stack_bytes + stagger});
  }
  return stacks;
}

}  // namespace octavo::gpu::simt
