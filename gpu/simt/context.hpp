// Execution contexts that a thread switches between by hand, and stacks for them.
// On x86-64 a switch is a dozen instructions; elsewhere, or where
// OCTAVO_SIMT_PORTABLE is defined, it is ucontext's, some thirty times slower.
// Sanitizers are told of every switch.
#pragma once

#include <cstddef>
#include <vector>

#if !defined(__x86_64__) && !defined(OCTAVO_SIMT_PORTABLE)
#define OCTAVO_SIMT_PORTABLE
#endif
#if defined(OCTAVO_SIMT_PORTABLE)
#include <ucontext.h>
#endif

namespace octavo::gpu::simt {

/// A suspended flow of control: a fiber, or the OS thread that runs fibers.
struct context {
#if defined(OCTAVO_SIMT_PORTABLE)
  ucontext_t registers{};
#else
  void* stack_pointer = nullptr;
#endif
  char* stack_low = nullptr;
  std::size_t stack_bytes = 0;
  void* sanitizer_fiber = nullptr;  // ASan: its fake stack; TSan: its fiber
};

/// Prepares `c` to start `entry` on its stack at the first switch to it; `entry`
/// must not return, and must call context_entered() first.
void make_context(context& c, void (*entry)());

/// Fills in what sanitizers want to know of the calling OS thread.
void adopt_thread(context& c);

/// Suspends `from`, the running context, and resumes `to`.
void switch_context(context& from, context& to);

/// To be called first on a new context.
void context_entered();

/// Gives back what sanitizers hold for a context that will not run again.
void discard_context(context& c);

/// Stacks with a guard page below each, mapped in one piece per growth and
/// touched only as deep as they are used.
class stack_pool {
 public:
  stack_pool() = default;
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool();

  /// Stacks for `count` contexts more, as the low end and size of each.
  struct stack {
    char* low;
    std::size_t bytes;
  };
  std::vector<stack> grow(std::size_t count);

 private:
  struct mapping {
    void* address;
    std::size_t bytes;
  };
  std::vector<mapping> mappings_;
};

}  // namespace octavo::gpu::simt
