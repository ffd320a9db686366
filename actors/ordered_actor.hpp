// Makes ThreadSanitizer see how messages order what actors do.
//
// Distributions build the actor framework's library without the sanitizer, so
// the atomic operations of its mailboxes are invisible: every hand-over of a
// message looks like a race, and the only remedy would be to ignore all reports
// with the framework on the stack, which is every report from a handler. This
// base says what the mailbox guarantees: whatever a sender did before it sent
// happens before the handler runs, and an actor's handlers run one after the
// other. A race in a handler on anything else is then reported as one.
//
// Slightly too generous, never too strict: what a sender did before is ordered
// before all messages handled later, not just before its own. Without the
// sanitizer the base is empty and costs nothing.
#pragma once

#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

#include <caf/error.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>
#endif

namespace octavo::actors {

#ifdef __SANITIZE_THREAD__

/// Base of every actor class: `class x : public ordered_actor<x_actor::base>`.
template <class Base>
class ordered_actor : public Base {
 public:
  using Base::Base;

  void launch(caf::execution_unit* unit, bool lazy, bool hide) override {
    __tsan_release(this);
    Base::launch(unit, lazy, hide);
  }
  void initialize() override {
    __tsan_acquire(this);
    Base::initialize();
    __tsan_release(this);
  }
  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    __tsan_release(this);
    Base::enqueue(std::move(message), unit);
  }
  caf::invoke_message_result consume(caf::mailbox_element& message) override {
    __tsan_acquire(this);
    const auto result = Base::consume(message);
    __tsan_release(this);
    return result;
  }
  // Behind on_exit; and before the destructor, by whoever lets go of it last.
  bool cleanup(caf::error&& reason, caf::execution_unit* unit) override {
    __tsan_release(this);
    return Base::cleanup(std::move(reason), unit);
  }
  void on_destroy() override {
    __tsan_acquire(this);
    Base::on_destroy();
  }
};

#else

template <class Base>
using ordered_actor = Base;

#endif

}  // namespace octavo::actors
