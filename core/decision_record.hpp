// One step's decisions, each with its reason: what the decision log stores and
// what explain, the timeline, metrics and Chrome traces are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "core/reason.hpp"
#include "core/request.hpp"
#include "core/step.hpp"
#include "core/units.hpp"

namespace octavo {

enum class input_kind : std::uint8_t { none, submit, cancel, drain, wake, result };

/// An input as consumed, in order. Submits and results carry more in the log.
struct input_record {
  input_kind kind = input_kind::none;
  micros stamp;
  request_id request;         ///< submit, cancel
  token_count prompt_tokens;  ///< submit
  token_count max_tokens;     ///< submit
  step_id step;               ///< result
  friend bool operator==(const input_record&, const input_record&) = default;
};

/// A sequence as the log names it.
struct sequence_name {
  request_id request;
  std::uint16_t sample = 0;
  friend auto operator<=>(const sequence_name&, const sequence_name&) = default;
};

struct ran_record {
  sequence_name who;
  token_count tokens;
  token_count padding;
  bool decode = false;
  friend bool operator==(const ran_record&, const ran_record&) = default;
};

struct admitted_record {
  sequence_name who;
  reason why = reason::admitted;  ///< admitted, prefix_hit or resumed
  token_count hit_tokens;
  friend bool operator==(const admitted_record&, const admitted_record&) = default;
};

struct preempted_record {
  sequence_name victim;
  sequence_name requester;
  friend bool operator==(const preempted_record&, const preempted_record&) = default;
};

struct finished_record {
  sequence_name who;
  reason why = reason::finished_eos;
  std::int64_t a = 0;
  std::int64_t b = 0;
  friend bool operator==(const finished_record&, const finished_record&) = default;
};

/// A waiting or a cut-short request, with the reason's two numbers.
struct held_record {
  sequence_name who;
  reason why = reason::no_budget;
  std::int64_t a = 0;
  std::int64_t b = 0;
  friend bool operator==(const held_record&, const held_record&) = default;
};

struct decision_record {
  step_id step;
  micros now;
  token_count budget;
  std::vector<input_record> inputs;
  std::vector<ran_record> ran;
  std::vector<admitted_record> admitted;
  std::vector<preempted_record> preempted;
  std::vector<finished_record> finished;
  std::vector<held_record> held;
  /// Requests behind the last held one, not looked at: one range.
  std::int64_t behind = 0;
  block_count free;
  block_count used;

  void clear() {
    inputs.clear();
    ran.clear();
    admitted.clear();
    preempted.clear();
    finished.clear();
    held.clear();
    behind = 0;
  }

  friend bool operator==(const decision_record&, const decision_record&) = default;
};

/// Hears each record as it is made; it must not keep the reference.
class decision_observer {
 public:
  virtual ~decision_observer() = default;
  virtual void on_record(const decision_record& record) = 0;
};

}  // namespace octavo
