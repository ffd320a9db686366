// The simulated executor for the real world: a step takes as long as the cost model
// says, on the wall, and its tokens are a placeholder text. It lets clients, routers and
// dashboards be tried against a machine that one does not have.
//
// The device has a timeline of its own: a step begins when it was planned, or when the
// one before it ends. A host that wakes up late hears of a step's end late, but does not
// delay the next.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/executor.hpp"
#include "model/tokenizer/sequence_text.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "sim/cost/cost_model.hpp"

namespace octavo::sim {

/// A monotonic clock, and a wait until a moment of it, in seconds; and which moment of it
/// a step's `planned_at` is.
struct pace {
  std::function<double()> seconds;
  std::function<void(double)> wait_until;
  std::function<double(micros)> moment_of;
};

/// What a token says.
enum class placeholder_kind : std::uint8_t {
  prose,  ///< a piece of a sentence that says that no model was asked
  clock   ///< the moment at which its step ended, in whole microseconds and a space; stop
          ///< strings are looked for in the prose all the same
};

/// Tokens to generate for a request that does not ignore the end: from 16 to 400, most of
/// them short, the same for the same request.
[[nodiscard]] std::int32_t placeholder_length(request_id request, std::uint16_t sample);

class paced_executor final : public executor {
 public:
  /// `words` make the placeholder text; at least one token of it must exist. Stop strings
  /// and stop tokens are obeyed, as by an executor that computes.
  paced_executor(std::shared_ptr<const cost_model> cost, executor_capabilities can,
                 std::shared_ptr<const model::tokenizer> words, pace clock, bool runs_ahead,
                 placeholder_kind says = placeholder_kind::prose);

  [[nodiscard]] executor_capabilities capabilities() const override { return can_; }
  void submit(step_ptr plan) override;
  step_ptr await() override;

 private:
  struct running {
    request_id request;
    std::int32_t prompt_tokens = 0;
    std::int32_t end_tokens = 0;
    std::shared_ptr<const sampling_parameters> sampling;
    /// With `said` tokens behind it.
    std::optional<model::sequence_text> text;
    std::int32_t said = 0;
  };
  void follow(const step& plan);
  void fill(step& plan);
  [[nodiscard]] token_id token_at(std::int32_t number) const;
  void tell_up_to(running& of, std::int32_t tokens) const;
  void add_token(step& plan, std::uint32_t index, std::uint16_t sample, running& of,
                 std::int32_t number);

  std::shared_ptr<const cost_model> cost_;
  executor_capabilities can_;
  std::shared_ptr<const model::tokenizer> words_;
  pace clock_;
  bool runs_ahead_;
  placeholder_kind says_;
  std::vector<token_id> phrase_;
  std::unordered_map<std::uint32_t, running> slots_;
  std::vector<std::pair<step_ptr, double>> pending_;  ///< with the moment it ends
  double busy_until_s_ = 0;
  std::vector<prefill_chunk> chunks_;
};

}  // namespace octavo::sim
