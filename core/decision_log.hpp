// The decision log: per step, the inputs consumed in order and the decisions
// made of them, as compact binary records chained by a hash.
//
//   record payload  = inputs, end mark, decisions      (varints; see .cpp)
//   chain           = SipHash-2-4-128 of the payload, keyed by the chain before
//
// The same header and the same ordered inputs give the same bytes, whoever the
// executor was. Because each hash covers all before it, the first difference of
// two logs is found by bisection, and one hash stands for a whole run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/decision_record.hpp"
#include "core/request.hpp"
#include "core/siphash.hpp"
#include "core/step.hpp"
#include "core/varint.hpp"

namespace octavo {

/// Where a log's records go: a file, memory, nowhere.
class log_sink {
 public:
  virtual ~log_sink() = default;
  virtual void on_entry(std::span<const std::byte> payload, const hash128& chain) = 0;
};

/// An input with all that a replay needs.
struct logged_input {
  input_kind kind = input_kind::none;
  micros stamp;
  request_spec spec;   ///< submit
  request_id request;  ///< cancel
  step_id step;        ///< result
  step_result result;  ///< result, token ids left out
  friend bool operator==(const logged_input& a, const logged_input& b);
};

/// A decoded record.
struct logged_step {
  std::vector<logged_input> inputs;
  decision_record decisions;
};

class decision_log {
 public:
  /// Starts the chain from the header, the configuration as JSON.
  explicit decision_log(std::string_view header);

  void set_sink(log_sink* sink) { sink_ = sink; }
  /// With neither hash nor sink, records are not even encoded.
  void disable() { enabled_ = false; }
  [[nodiscard]] bool enabled() const { return enabled_; }

  void add_submit(const request_spec& spec, micros stamp);
  void add_cancel(request_id id, micros stamp);
  void add_drain(micros stamp);
  void add_wake(micros stamp);
  void add_result(const step& done, micros stamp);
  /// Closes the record of which the inputs were added.
  void commit(const decision_record& record);

  [[nodiscard]] const hash128& chain() const { return chain_; }
  [[nodiscard]] std::uint64_t records() const { return records_; }

 private:
  void start_input(input_kind kind, micros stamp);
  void put_name(const sequence_name& name);
  void put_ran(const std::vector<ran_record>& ran);
  void put_decisions(const decision_record& record);

  bool enabled_ = true;
  log_sink* sink_ = nullptr;
  byte_writer out_;
  hash128 chain_;
  std::uint64_t records_ = 0;
  micros last_stamp_;
  std::vector<ran_record> last_ran_;
};

/// Decodes the payloads of one log, in order. Throws std::out_of_range on bytes
/// that no log has.
class decision_log_decoder {
 public:
  [[nodiscard]] logged_step decode(std::span<const std::byte> payload);

 private:
  void get_decisions(byte_reader& in, decision_record& record);

  micros last_stamp_;
  std::vector<ran_record> last_ran_;
};

/// The chain's value before the first record.
[[nodiscard]] hash128 chain_of_header(std::string_view header);
/// The chain's value after a record.
[[nodiscard]] hash128 chain_next(const hash128& chain, std::span<const std::byte> payload);

}  // namespace octavo
