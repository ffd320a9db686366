// See response_stream.hpp.
#include "web/gateway/api/response_stream.hpp"

#include <utility>

#include "web/gateway/api/json_text.hpp"
#include "web/gateway/api/token_logprobs.hpp"

namespace octavo::api {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view delta_name = "response.output_text.delta";

/// The client's own id, which tells several responses on a socket apart.
ordered_json client_member(std::string_view client_id, std::string_view field) {
  ordered_json member = ordered_json::object();
  if (!client_id.empty()) member[std::string{field}] = client_id;
  return member;
}

ordered_json event_head(std::string_view name, const ordered_json& client) {
  ordered_json head = {{"type", name}};
  head.update(client);
  return head;
}

ordered_json usage_object(const token_usage& usage) {
  return {
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", {{"reasoning_tokens", 0}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

ordered_json timings_object(const answer_timings& timings, const token_usage& usage) {
  return {{"queue_ms", timings.queue_ms},
          {"ttft_ms", timings.ttft_ms},
          {"total_ms", timings.total_ms},
          {"cached_tokens", usage.cached_tokens}};
}

ordered_json created_response(const answer_identity& identity, const generation_request& request) {
  const sampling_parameters& sampling = request.sampling;
  return {{"id", identity.id},
          {"object", "response"},
          {"created_at", identity.created_s},
          {"status", "in_progress"},
          {"background", false},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", request.instructions},
          {"max_output_tokens",
           request.max_tokens ? ordered_json(*request.max_tokens) : ordered_json{}},
          {"model", identity.model},
          {"output", ordered_json::array()},
          {"parallel_tool_calls", true},
          {"previous_response_id", nullptr},
          {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
          {"service_tier", "default"},
          {"store", false},
          {"temperature", shortest(sampling.temperature)},
          {"text", {{"format", {{"type", "text"}}}}},
          {"tool_choice", "none"},
          {"tools", ordered_json::array()},
          {"top_logprobs", sampling.logprobs < 0 ? 0 : sampling.logprobs},
          {"top_p", shortest(sampling.top_p)},
          {"truncation", "disabled"},
          {"usage", nullptr},
          {"user", request.user.empty() ? ordered_json{} : ordered_json(request.user)},
          {"metadata", request.metadata}};
}

/// "resp_abc" has the message "msg_abc".
std::string message_id(std::string_view response_id) {
  const auto bar = response_id.find('_');
  return "msg_" +
         std::string{bar == std::string_view::npos ? response_id : response_id.substr(bar + 1)};
}

std::string_view status_of(const ending& how) {
  if (how.reason == "stop") return "completed";
  return how.reason == "abort" ? "cancelled" : "incomplete";
}

}  // namespace

response_stream::response_stream(const answer_identity& identity, const generation_request& request,
                                 std::string_view client_id, std::string_view client_id_field)
    : base_(created_response(identity, request)),
      client_(client_member(client_id, client_id_field)),
      item_id_(message_id(identity.id)),
      logprobs_(request.sampling.logprobs >= 0) {
  ordered_json front = event_head(delta_name, client_);
  front.update({{"item_id", item_id_}, {"output_index", 0}, {"content_index", 0}});
  delta_front_ = json_text(front);
  delta_front_.back() = ',';
}

response_event response_stream::event(std::string_view name, ordered_json fields) {
  ordered_json all = event_head(name, client_);
  all["sequence_number"] = sequence_number_++;
  all.update(fields);
  return {std::string{name}, json_text(all)};
}

ordered_json response_stream::response(std::string_view status) const {
  ordered_json object = base_;
  object["status"] = status;
  return object;
}

ordered_json response_stream::part() const {
  return {{"type", "output_text"},
          {"text", text_},
          {"annotations", ordered_json::array()},
          {"logprobs", logprobs_so_far_}};
}

ordered_json response_stream::item(std::string_view status) const {
  ordered_json content = ordered_json::array();
  if (status != "in_progress") content.push_back(part());
  return {{"id", item_id_},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

ordered_json response_stream::ended(const ending& how, const token_usage& usage) const {
  ordered_json object = response(status_of(how));
  const bool complete = how.reason == "stop";
  if (how.reason == "length") object["incomplete_details"] = {{"reason", "max_output_tokens"}};
  object["output"] = ordered_json::array({item(complete ? "completed" : "incomplete")});
  object["usage"] = usage_object(usage);
  return object;
}

std::vector<response_event> response_stream::begin() {
  std::vector<response_event> events;
  events.push_back(event("response.created", {{"response", response("in_progress")}}));
  events.push_back(event("response.in_progress", {{"response", response("in_progress")}}));
  events.push_back(
      event("response.output_item.added", {{"output_index", 0}, {"item", item("in_progress")}}));
  events.push_back(
      event("response.content_part.added",
            {{"item_id", item_id_}, {"output_index", 0}, {"content_index", 0}, {"part", part()}}));
  return events;
}

response_event response_stream::delta(std::string_view text, std::span<const token_info> tokens) {
  text_ += text;
  std::string json = delta_front_;
  json.append(R"("delta":)").append(json_quoted(text)).append(R"(,"logprobs":)");
  if (logprobs_) {
    const ordered_json list = response_logprobs(tokens);
    for (const auto& token : list) logprobs_so_far_.push_back(token);
    json.append(json_text(list));
  } else {
    json.append("[]");
  }
  json.append(R"(,"sequence_number":)").append(std::to_string(sequence_number_++)).append("}");
  return {std::string{delta_name}, std::move(json)};
}

std::vector<response_event> response_stream::end(const ending& how, const token_usage& usage,
                                                 const answer_timings& timings) {
  const ordered_json place = {{"item_id", item_id_}, {"output_index", 0}, {"content_index", 0}};
  const auto at_place = [&](ordered_json more) {
    ordered_json fields = place;
    fields.update(more);
    return fields;
  };
  const bool complete = how.reason == "stop";
  std::vector<response_event> events;
  events.push_back(event("response.output_text.done",
                         at_place({{"text", text_}, {"logprobs", logprobs_so_far_}})));
  events.push_back(event("response.content_part.done", at_place({{"part", part()}})));
  events.push_back(
      event("response.output_item.done",
            {{"output_index", 0}, {"item", item(complete ? "completed" : "incomplete")}}));
  events.push_back(
      event(complete ? "response.completed" : "response.incomplete",
            {{"response", ended(how, usage)}, {"timings", timings_object(timings, usage)}}));
  return events;
}

response_event response_stream::fail(const api_error& why) {
  ordered_json object = response("failed");
  object["error"] = {{"code", "server_error"}, {"message", why.message}};
  if (!text_.empty()) object["output"] = ordered_json::array({item("incomplete")});
  return event("response.failed", {{"response", std::move(object)}});
}

std::string response_stream::whole(const ending& how, const token_usage& usage,
                                   const answer_timings& timings) const {
  ordered_json object = ended(how, usage);
  object["timings"] = timings_object(timings, usage);
  return json_text(object);
}

std::string error_event(const api_error& why, std::string_view client_id,
                        std::string_view client_id_field) {
  ordered_json event = event_head("error", client_member(client_id, client_id_field));
  event["status"] = why.status;
  event["error"] = why.details();
  return json_text(event);
}

}  // namespace octavo::api
