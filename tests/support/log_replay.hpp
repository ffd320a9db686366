// Replays the inputs of a recorded decision log through a fresh ring and
// compares every record: the golden property, that the same header and the same
// ordered inputs give the same bytes.
#pragma once

#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/decision_log.hpp"
#include "core/ring.hpp"
#include "tests/support/fake_world.hpp"

namespace octavo::test {

/// Throws std::logic_error naming the first record that differs.
inline void replay(const engine_config& config,
                   const std::vector<std::vector<std::byte>>& payloads) {
  decision_log log{to_json(config)};
  memory_sink sink;
  log.set_sink(&sink);
  ring engine{config, log};
  record_keeper records;
  engine.scheduler.observe(records);
  decision_log_decoder decoder;
  std::deque<step_ptr> flight;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const logged_step recorded = decoder.decode(payloads[i]);
    for (const logged_input& input : recorded.inputs) {
      switch (input.kind) {
        case input_kind::none:
          break;
        case input_kind::submit:
          engine.scheduler.on_submit(input.spec, input.stamp);
          break;
        case input_kind::cancel:
          engine.scheduler.on_cancel(input.request, input.stamp);
          break;
        case input_kind::drain:
          engine.scheduler.on_drain(input.stamp);
          break;
        case input_kind::wake:
          engine.scheduler.on_wake(input.stamp);
          break;
        case input_kind::result:
          if (flight.empty()) throw std::logic_error("replay: a result of no step");
          flight.front()->result = input.result;
          engine.scheduler.on_result(*flight.front(), input.stamp);
          flight.pop_front();
          break;
      }
    }
    if (!engine.scheduler.wants_plan()) throw std::logic_error("replay: no plan is wanted");
    if (step_ptr plan = engine.advance_once()) flight.push_back(std::move(plan));
    if (sink.payloads.size() != i + 1 || sink.payloads[i] != payloads[i]) {
      throw std::logic_error("replay: record " + std::to_string(i) + " differs");
    }
    if (records.records.back() != recorded.decisions) {
      throw std::logic_error("replay: record " + std::to_string(i) + " is not what was decided");
    }
  }
}

}  // namespace octavo::test
