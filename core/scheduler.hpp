// The scheduler: books inputs, makes step plans by its policy, keeps the exact
// count of free blocks, and says why it did what it did.
//
// Pure and single-threaded. A shell (actors/, or core/ring.hpp) drives it:
//
//   inputs, only at a step boundary, in order:   on_result, on_submit, on_cancel,
//                                                on_drain, on_wake
//   then, while wants_plan():   begin_plan(step, question)
//                               [ask the prefix cache when it returns true]
//                               finish_plan(step, answer)  -> commit when true
//
// Each record of the decision log is one begin_plan/finish_plan pair. A pair
// that consumed no input and decided nothing leaves no record and no trace.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/block_ledger.hpp"
#include "core/config.hpp"
#include "core/decision_log.hpp"
#include "core/decision_record.hpp"
#include "core/policy/policy.hpp"
#include "core/request.hpp"
#include "core/step.hpp"
#include "core/tick.hpp"
#include "core/waiting_queue.hpp"

namespace octavo {

/// A token for a client.
struct token_event {
  request_id request;
  sink_id sink;
  std::uint16_t sample = 0;
  token_id token = -1;  ///< -1 where ids do not exist
  /// The text it completed, in `step_events::text`.
  std::uint32_t text_begin = 0;
  std::uint32_t text_size = 0;
  /// Its place in `step_events::logprobs`; -1 where nobody asked.
  std::int32_t logprobs = -1;
};

/// A request that asked for it was accepted into the queue.
struct accepted_event {
  request_id request;
  sink_id sink;
};

/// The end of one sequence.
struct finish_event {
  request_id request;
  sink_id sink;
  std::uint16_t sample = 0;
  /// No other sequence of the request lives.
  bool request_done = false;
  reason why = reason::finished_eos;
  std::int64_t a = 0;  ///< the reason's numbers
  std::int64_t b = 0;
  token_count output_tokens;
  token_count cached_tokens;
  std::int32_t preemptions = 0;
  micros submitted_at;
  micros admitted_at;  ///< meaningful where cached_tokens >= 0
};

/// What the clients of one booking hear, in order; tokens before finishes.
struct step_events {
  micros now;
  std::vector<accepted_event> accepted;
  std::vector<token_event> tokens;
  std::string text;
  std::vector<token_logprobs> logprobs;
  std::vector<finish_event> finishes;

  [[nodiscard]] bool empty() const {
    return accepted.empty() && tokens.empty() && finishes.empty();
  }
  void clear() {
    accepted.clear();
    tokens.clear();
    text.clear();
    logprobs.clear();
    finishes.clear();
  }
};

/// Sums since the start, and the state now.
struct scheduler_statistics {
  std::int64_t submitted = 0;
  std::int64_t completed = 0;
  std::int64_t rejected = 0;
  std::int64_t cancelled = 0;
  std::int64_t failed = 0;
  std::int64_t preemptions = 0;
  std::int64_t steps = 0;
  std::int64_t generated_tokens = 0;
  std::int64_t wasted_tokens = 0;  ///< run ahead of a stop
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t waiting_tokens = 0;
  block_count blocks_used;
  block_count blocks_total;
  /// Distinct tokens whose KV lies in held blocks.
  std::int64_t kv_tokens = 0;
};

class scheduler {
 public:
  /// `log` may be disabled but not null. Throws input_error for a bad config.
  /// `secret` keys the blocks that generated tokens complete.
  scheduler(engine_config config, decision_log& log, hash128 secret = {});

  // ---- inputs
  void on_result(step& done, micros stamp);
  void on_submit(request_spec spec, micros stamp);
  void on_cancel(request_id id, micros stamp);
  void on_drain(micros stamp);
  void on_wake(micros stamp);

  // ---- planning
  /// A plan may be made now: there is news, or room to run ahead.
  [[nodiscard]] bool wants_plan() const;
  /// Starts a plan in the cleared `plan`. Returns true where `question` must be
  /// answered before finish_plan.
  bool begin_plan(step& plan, match_batch& question);
  /// Ends it. `answer` is the answered question, null where none was asked.
  /// Returns true where the plan is to be committed.
  bool finish_plan(step& plan, const match_batch* answer);

  /// When to call on_wake if nothing happens before.
  [[nodiscard]] std::optional<micros> wake() const { return wake_; }
  /// Events since the last call of clear() on them.
  [[nodiscard]] step_events& events() { return events_; }
  [[nodiscard]] scheduler_statistics statistics() const;
  [[nodiscard]] const engine_config& config() const { return config_; }
  [[nodiscard]] micros now() const { return now_; }
  /// No request lives and no step is in flight.
  [[nodiscard]] bool idle() const { return requests_alive_ == 0 && in_flight_ == 0; }
  [[nodiscard]] std::int32_t steps_in_flight() const { return in_flight_; }
  void observe(decision_observer& observer) { observers_.push_back(&observer); }

 private:
  struct request_state {
    request_spec spec;
    std::uint64_t arrival = 0;
    std::vector<std::uint32_t> sequences;
    std::int32_t alive = 0;  ///< sequences that have not ended
    std::int32_t kept = 0;   ///< sequences that are not forgotten yet
  };
  /// The head of the queue as it was last refused for lack of memory.
  struct blocked_head {
    sequence_name who;
    block_count free;
  };
  /// A sampled child that has not got its table yet.
  struct pending_fork {
    std::uint32_t parent = 0;
    std::uint32_t child = 0;
  };

  /// What of a result's flat arrays is booked already.
  struct result_cursor {
    std::size_t finish = 0;
    std::size_t token = 0;
    std::size_t key = 0;
  };

  // booking (scheduler_booking.cpp)
  void advance_clock(micros stamp);
  void input(input_kind kind, micros stamp, request_id id = {}, token_count prompt = {},
             token_count limit = {}, step_id of = {});
  [[nodiscard]] std::optional<finished_record> refuse(const request_spec& spec) const;
  [[nodiscard]] block_count blocks_to_start(const request_spec& spec) const;
  void key_output_blocks(step& done) const;
  void book_namings(const step& done);
  void fail_all(const step& done);
  void book_work(const step& done, std::uint32_t index, result_cursor& next);
  void book_sample(sequence& s, const step_result& result, std::size_t token, finish_kind how);
  sequence& add_sequence(std::uint32_t request, std::uint16_t sample);
  sequence& add_child(const sequence& parent, std::uint16_t sample);
  void finish(sequence& s, reason why, std::int64_t a = 0, std::int64_t b = 0);
  void give_back(sequence& s);
  void end_static_batch_if_done();
  void sweep_ended();
  void count_end(reason why);

  // planning (scheduler_planning.cpp)
  void start_forks(step& plan);
  [[nodiscard]] std::int32_t candidates_worth_a_look() const;
  void remember_for_next_look(const tick& t);
  bool collect_candidates(std::int32_t wanted, match_batch& question);
  void add_question(sequence& s, match_batch& question);
  [[nodiscard]] std::span<const admission_candidate> answered(const match_batch* answer);
  void settle_waiting(const tick& t);
  void fill_tokens(step& plan) const;
  void name_full_blocks(step& plan);
  [[nodiscard]] block_key key_of(const sequence& s, std::uint32_t block) const;
  [[nodiscard]] bool may_be_cached(const sequence& s) const;
  [[nodiscard]] bool shares_by_fork(const request_spec& spec) const;

  engine_config config_;
  decision_log& log_;
  block_hasher hasher_;
  std::unique_ptr<policy> policy_;
  block_ledger ledger_;
  waiting_queue waiting_;

  std::deque<request_state> requests_;
  std::vector<std::uint32_t> free_requests_;
  std::unordered_map<std::uint64_t, std::uint32_t> request_by_id_;
  std::deque<sequence> sequences_;
  std::vector<std::uint32_t> free_sequences_;
  std::vector<sequence*> running_;
  std::vector<pending_fork> pending_forks_;
  std::vector<sequence*> children_;  ///< scratch of book_work
  std::vector<release_command> pending_releases_;
  std::vector<std::uint32_t> ended_;
  std::vector<match_batch::publication> changes_;
  std::vector<token_id> change_tokens_;
  slot_pool slots_;

  decision_record record_;
  std::optional<tick> tick_;
  std::vector<sequence*> candidates_;
  std::vector<admission_candidate> admission_;
  std::optional<blocked_head> blocked_;
  std::int32_t admitted_last_ = 0;
  std::vector<decision_observer*> observers_;
  step_events events_;
  scheduler_statistics totals_;

  micros now_;
  std::optional<micros> wake_;
  std::uint64_t next_arrival_ = 0;
  std::uint64_t next_step_ = 1;
  step_id booked_;
  std::int64_t requests_alive_ = 0;
  std::int32_t in_flight_ = 0;
  bool draining_ = false;
  /// Inputs came, or a step was planned and another may be planned ahead of it.
  bool plan_wanted_ = false;
};

}  // namespace octavo
