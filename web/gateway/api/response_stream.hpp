// A response in the shapes of OpenAI's Responses API: the events of a stream, which are
// the same over SSE and WebSocket, and the whole object for clients that do not stream.
//
//   response_stream events{identity, request, client_id};
//   for (const response_event& e : events.begin()) send(e);      // created … part added
//   send(events.delta("Hello", {}));
//   for (const response_event& e : events.end(how, usage, timings)) send(e);
//
// Over SSE each is sse_event(e.json, e.name), with no [DONE]; over WebSocket e.json alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "web/gateway/api/answer_parts.hpp"
#include "web/gateway/api/api_error.hpp"
#include "web/gateway/api/generation_request.hpp"

namespace octavo::api {

struct response_event {
  std::string name;  ///< its "type", such as "response.output_text.delta"
  std::string json;
};

/// Numbers its events from 0 and keeps the text, which the last events repeat.
class response_stream {
 public:
  /// `client_id` is the client's name for the response on its socket; where not empty,
  /// every event carries it in the field `client_id_field`.
  response_stream(const answer_identity& identity, const generation_request& request,
                  std::string_view client_id = {}, std::string_view client_id_field = "id");

  /// response.created, .in_progress, .output_item.added, .content_part.added.
  [[nodiscard]] std::vector<response_event> begin();
  /// response.output_text.delta.
  [[nodiscard]] response_event delta(std::string_view text, std::span<const token_info> tokens);
  /// .output_text.done, .content_part.done, .output_item.done, and the last:
  /// response.completed for "stop", response.incomplete for "length" (max_output_tokens)
  /// and "abort" (status "cancelled"). It carries "usage", and "timings" beside the
  /// response: {queue_ms, ttft_ms, total_ms, cached_tokens}.
  [[nodiscard]] std::vector<response_event> end(const ending& how, const token_usage& usage,
                                                const answer_timings& timings);
  /// response.failed: the last event where the engine could not go on.
  [[nodiscard]] response_event fail(const api_error& why);

  /// The whole answer, for clients that do not stream: after delta()s, in place of end().
  [[nodiscard]] std::string whole(const ending& how, const token_usage& usage,
                                  const answer_timings& timings) const;

 private:
  [[nodiscard]] response_event event(std::string_view name, nlohmann::ordered_json fields);
  [[nodiscard]] nlohmann::ordered_json response(std::string_view status) const;
  [[nodiscard]] nlohmann::ordered_json ended(const ending& how, const token_usage& usage) const;
  [[nodiscard]] nlohmann::ordered_json item(std::string_view status) const;
  [[nodiscard]] nlohmann::ordered_json part() const;

  nlohmann::ordered_json base_;    ///< the response as created
  nlohmann::ordered_json client_;  ///< the client's id for it, as a member of an object
  std::string item_id_;
  std::string delta_front_;  ///< of a delta event, up to the text
  bool logprobs_ = false;
  std::string text_;
  nlohmann::ordered_json logprobs_so_far_ = nlohmann::ordered_json::array();
  std::int64_t sequence_number_ = 0;
};

/// An `error` event: a message that could not be obeyed, outside of any response.
/// {"type":"error","id"?,"status","error":{message,type,param,code}}.
[[nodiscard]] std::string error_event(const api_error& why, std::string_view client_id = {},
                                      std::string_view client_id_field = "id");

}  // namespace octavo::api
