// One client's request while it runs: its prompts and samples, what came of each, and
// whom to tell. Lives on the network thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/reason.hpp"
#include "core/request.hpp"
#include "core/scheduler.hpp"
#include "model/tokenizer/sequence_text.hpp"
#include "web/gateway/api/answer_parts.hpp"
#include "web/gateway/api/api_error.hpp"
#include "web/gateway/api/generation_request.hpp"

namespace octavo::gateway {

/// Hears how a request goes, in this order: accepted, texts, endings, done; or failed
/// at any point, last of all.
class listener {
 public:
  virtual ~listener() = default;
  /// Every prompt is in the queue.
  virtual void accepted() = 0;
  /// A sample's text went on. `tokens` is empty unless log-probabilities are wanted.
  virtual void text(std::int32_t index, std::string_view text,
                    std::span<const api::token_info> tokens) = 0;
  virtual void ended(std::int32_t index, const api::ending& how) = 0;
  virtual void done(const api::token_usage& usage, const api::answer_timings& timings) = 0;
  virtual void failed(const api::api_error& why) = 0;

  /// The figures so far; set before anything is heard.
  const api::token_usage* usage_so_far = nullptr;
};

/// Times of one request in seconds of one clock.
struct request_times {
  double arrived_s = 0;
  /// From the arrival until the engine was told: a duration.
  double preparation_s = 0;
  double first_token_s = 0;
};

struct generation {
  api::generation_request request;
  std::vector<api::prepared_prompt> prompts;
  /// The engine's names of the prompts, in order.
  std::vector<request_id> ids;
  /// Null while the prompts are being prepared.
  std::unique_ptr<listener> hears;

  request_times times;
  /// Queue time of the first prompt, preparation included.
  double queued_s = 0;
  bool scheduled = false;
  std::int32_t accepted = 0;  ///< prompts in the queue
  std::int32_t done = 0;      ///< prompts that ended
  api::token_usage usage;
  /// By index, the last token; for stop_reason.
  std::vector<token_id> last_token;
  /// By index, where there are stop strings: the text as the executor saw it, which tells
  /// the string that ended it.
  std::vector<model::sequence_text> stop_search;

  [[nodiscard]] std::int32_t index_of(std::size_t prompt, std::uint16_t sample) const {
    return static_cast<std::int32_t>(prompt) * request.n + sample;
  }
};

/// What an OpenAI client reads as the reason of an end; for reasons that are no failure.
[[nodiscard]] api::ending ending_of(reason why, const generation& of, std::int32_t index);

/// The error that a rejection or failure is for its client. `a` and `b` are the reason's
/// numbers.
[[nodiscard]] api::api_error error_of(reason why, std::int64_t a, std::int64_t b);

}  // namespace octavo::gateway
