// Every request that is under way, by the engine's names: submits, passes on what the
// engine tells, cancels. Lives on the network thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/block_key.hpp"
#include "model/chat/chat_template.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "web/gateway/api/limits.hpp"
#include "web/gateway/engine_link.hpp"
#include "web/gateway/generation.hpp"
#include "web/gateway/metrics.hpp"
#include "web/gateway/preparer.hpp"
#include "web/gateway/recorder.hpp"

namespace octavo::gateway {

/// What is served.
struct served_model {
  api::limits limits;
  /// Null where nothing can be told of words: then prompts must be tokens.
  std::shared_ptr<const model::tokenizer> words;
  /// Null where the model has no chat template.
  std::shared_ptr<const model::chat_template> chat;
  token_count block_size{16};
  block_count blocks_total;
  bool prefix_caching = true;
  /// Keys prompts' blocks, as the scheduler keys those of generated tokens.
  hash128 secret;
};

/// Injected, so that tests need no clock.
struct hub_clocks {
  /// A monotonic clock in seconds.
  std::function<double()> seconds;
  /// Seconds since 1970-01-01 00:00 UTC. Also called where prompts are prepared, at once.
  std::function<std::int64_t()> unix_seconds;
};

class hub {
 public:
  /// All outlive this; `record` may be null. `worker` prepares long prompts and is stopped
  /// before this ends; where it is null every prompt is prepared within start().
  hub(served_model model, engine_link& engine, hub_clocks clocks, metrics& counts, recorder* record,
      preparer* worker = nullptr);

  /// Makes whoever is told of a request, given the engine's name of its first prompt.
  using make_listener =
      std::function<std::unique_ptr<listener>(request_id first, const generation& of)>;
  /// Hears, in place of a listener, why there will be none.
  using refuser = std::function<void(const api::api_error& why)>;
  /// Starts what a client asked for; the listener is told of it until it is done, failed
  /// or cancelled. Returns its number. Throws api_error for what can be known to be wrong.
  /// A long prompt is prepared first: `make` is called later, or `refuse` for what turns out
  /// to be wrong, or neither where it is cancelled. The others are made before this returns.
  std::uint64_t start(api::generation_request request, make_listener make, refuser refuse);
  /// Makes the listener of a request that is still being prepared, for who will cancel it.
  void introduce(std::uint64_t number);
  /// The client is gone, or wants no more. Its listener is dropped and hears nothing.
  void cancel(std::uint64_t number);
  /// Cancels everything, telling each listener `why`.
  void fail_all(const api::api_error& why);
  /// The same for those that are being prepared.
  void fail_preparing(const api::api_error& why);

  /// What the engine tells.
  void hear(const actors::event_batch& events);

  [[nodiscard]] std::size_t live() const { return live_.size(); }
  /// Whether something is under way and nothing has been heard for `limit_s`.
  [[nodiscard]] bool is_stuck(double limit_s) const;
  [[nodiscard]] const served_model& model() const { return model_; }
  [[nodiscard]] const hub_clocks& clocks() const { return clocks_; }

 private:
  struct place {
    std::uint64_t number = 0;
    std::size_t prompt = 0;
  };
  struct asker {
    std::uint64_t job = 0;
    make_listener make;
    refuser refuse;
  };
  struct ready_request {
    api::generation_request request;
    std::vector<api::prepared_prompt> prompts;
  };
  /// Any thread.
  ready_request prepare(api::generation_request request) const;
  void prepare_later(std::uint64_t number, std::unique_ptr<generation> of,
                     api::generation_request request, asker who);
  void go_on(std::uint64_t number, outcome<ready_request> ready);
  void begin(std::uint64_t number, ready_request ready, const make_listener& make);
  request_spec spec_of(const generation& of, std::size_t prompt, request_id id) const;
  void hear_token(const actors::event_batch& events, const token_event& token);
  void hear_finish(const finish_event& end);
  void finish(std::uint64_t number, generation& of);
  void fail(std::uint64_t number, const api::api_error& why);
  void drop(std::uint64_t number);

  served_model model_;
  engine_link& engine_;
  hub_clocks clocks_;
  metrics& counts_;
  recorder* record_;
  preparer* worker_;
  std::uint64_t next_number_ = 1;
  std::uint64_t next_id_ = 1;
  double heard_s_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<generation>> live_;
  std::unordered_map<std::uint64_t, place> places_;
  /// Of those in live_ that are being prepared.
  std::unordered_map<std::uint64_t, asker> preparing_;
};

}  // namespace octavo::gateway
