// Listens to a replica's decisions and writes one request's life out of them.
// It keeps the chapters of that life and, until the request arrives, who is
// there before it: bounded by the requests alive, whatever the trace's length.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/decision_record.hpp"

namespace octavo::sim::teach {

/// A stretch of a life that one sentence tells.
struct chapter {
  micros from;
  micros to;
  std::uint64_t first_step = 0;  ///< 0: not of a step
  std::uint64_t last_step = 0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  std::string key;  ///< what must agree for two stretches to be one
  std::string text;
};

/// Where the time went, and what was computed.
struct life_sums {
  micros queued;     ///< before the first admission
  micros preempted;  ///< in the queue again
  micros prefill;
  micros decode;
  micros stalled;  ///< admitted, without a token
  micros gap_max;  ///< between two of its tokens
  std::int64_t prompt_computed = 0;
  std::int64_t padding = 0;
  std::int64_t hit_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t tokens = 0;
  std::map<std::string, micros> waited_for;
};

class life_listener final : public decision_observer {
 public:
  explicit life_listener(request_id who) : who_(who) {}
  void on_record(const decision_record& record) override;

  [[nodiscard]] bool met() const { return arrived_.has_value(); }
  /// In order of time.
  [[nodiscard]] std::vector<chapter> chapters() const;
  [[nodiscard]] const life_sums& sums() const { return sums_; }
  [[nodiscard]] micros arrived() const { return arrived_.value_or(micros{}); }
  [[nodiscard]] micros ended() const { return ended_; }

 private:
  enum class phase : std::uint8_t { unmet, waiting, running, over };
  /// A step in flight, and the request's part in it, if it has one.
  struct planned {
    micros at;
    std::optional<ran_record> work;
    bool cut = false;
  };

  void forget_ended(const decision_record& record);
  void watch_others(const decision_record& record);
  void book_results(const decision_record& record);
  void book_step(const planned& plan, step_id step, micros from, micros to);
  void book_token(micros at);
  void book_end(const decision_record& record);
  void arrive(const decision_record& record, const input_record& input);
  void leave_queue(const decision_record& record, const admitted_record& admitted);
  void give_way(const decision_record& record, const preempted_record& preempted);
  void pass_wait(micros now);
  void wait(const decision_record& record);
  void plan(const decision_record& record);
  chapter& stretch(micros from, micros to, const std::string& key, step_id step);
  void say(micros at, std::string text);

  request_id who_;
  phase phase_ = phase::unmet;
  std::optional<micros> arrived_;
  micros ended_;
  micros waiting_since_;
  std::string waiting_for_;
  bool was_admitted_ = false;
  std::set<request_id> waiting_before_;
  std::set<request_id> running_before_;
  std::map<step_id, planned> in_flight_;
  micros busy_until_;
  micros last_token_{-1};
  std::vector<chapter> chapters_;
  std::size_t open_wait_ = 0;  ///< number of the chapter, from 1, of the wait that goes on
  life_sums sums_;
};

}  // namespace octavo::sim::teach
