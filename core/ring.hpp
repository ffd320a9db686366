// The ring without actors: scheduler, prefix index and block manager joined by
// plain calls. It makes the same decisions in the same order as the actors do,
// so tests, fuzzing and the replay of a log can use it.
//
//   ring r{config, log};
//   r.scheduler.on_submit(spec, micros{0});
//   while (step_ptr s = r.advance()) { …execute s…; r.scheduler.on_result(*s, now); }
#pragma once

#include <memory>

#include "core/block_manager.hpp"
#include "core/decision_log.hpp"
#include "core/prefix_index.hpp"
#include "core/scheduler.hpp"
#include "core/step.hpp"

namespace octavo {

class ring {
 public:
  ring(const engine_config& config, decision_log& log)
      : scheduler(config, log), prefixes(config.block_size), blocks(config) {}

  /// Makes one plan if one is wanted, and commits it. Null where nothing is to
  /// be executed. A plan that only releases is returned too, already answered
  /// by the block manager: hand it to on_result.
  [[nodiscard]] step_ptr advance() {
    while (scheduler.wants_plan()) {
      if (step_ptr plan = advance_once()) return plan;
    }
    return nullptr;
  }

  /// One plan, and at most one record of the log. Precondition: wants_plan().
  [[nodiscard]] step_ptr advance_once() {
    auto plan = std::make_shared<step>();
    question_.clear();
    const bool asked = scheduler.begin_plan(*plan, question_);
    if (asked) {
      prefixes.answer(question_);
      blocks.confirm(question_);
    }
    if (!scheduler.finish_plan(*plan, asked ? &question_ : nullptr)) return nullptr;
    blocks.commit(*plan);
    return plan;
  }

  octavo::scheduler scheduler;
  prefix_index prefixes;
  block_manager blocks;

 private:
  match_batch question_;
};

}  // namespace octavo
