// See shapes.hpp. Chunks are put together as text around a front that is written once: a
// server sends one for each token of each stream.
#include "web/gateway/api/shapes.hpp"

#include <nlohmann/json.hpp>

#include "web/gateway/api/json_text.hpp"
#include "web/gateway/api/token_logprobs.hpp"

namespace octavo::api {
namespace {

using nlohmann::ordered_json;

std::string chunk_front(const answer_identity& identity, std::string_view object) {
  return R"({"id":)" + json_quoted(identity.id) + R"(,"object":)" + json_quoted(object) +
         R"(,"created":)" + std::to_string(identity.created_s) + R"(,"model":)" +
         json_quoted(identity.model) + R"(,"choices":[)";
}

ordered_json usage_object(const token_usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

/// What follows the choices of a chunk.
std::string chunk_back(stream_shape shape, const token_usage* so_far) {
  if (!shape.include_usage) return "]}";
  return R"(],"usage":)" + (so_far ? json_text(usage_object(*so_far)) : "null") + "}";
}

ordered_json stop_reason(const ending& end) {
  if (const auto* text = std::get_if<std::string>(&end.stop_reason)) return *text;
  if (const auto* token = std::get_if<token_id>(&end.stop_reason)) return *token;
  return nullptr;
}

/// The members that say how a choice ended; without the stop reason while it goes on.
std::string finish_members(const ending* end) {
  if (end == nullptr) return R"("finish_reason":null)";
  return R"("finish_reason":)" + json_quoted(end->reason) + R"(,"stop_reason":)" +
         json_text(stop_reason(*end));
}

std::string whole(const answer_identity& identity, std::string_view object, ordered_json choices,
                  const token_usage& total) {
  return json_text({{"id", identity.id},
                    {"object", object},
                    {"created", identity.created_s},
                    {"model", identity.model},
                    {"choices", std::move(choices)},
                    {"usage", usage_object(total)}});
}

ordered_json card(std::string_view name, std::int64_t created_s, token_count max_model_len) {
  return {{"id", name},
          {"object", "model"},
          {"created", created_s},
          {"owned_by", "octavo"},
          {"root", name},
          {"parent", nullptr},
          {"max_model_len", max_model_len.raw()}};
}

}  // namespace

// ---- chat ------------------------------------------------------------------

chat_stream::chat_stream(const answer_identity& identity, stream_shape shape)
    : front_(chunk_front(identity, "chat.completion.chunk")), shape_(shape) {}

std::string chat_stream::chunk(std::int32_t index, std::string_view delta,
                               std::string_view logprobs, const ending* end,
                               const token_usage* so_far) const {
  std::string text = front_;
  text.append(R"({"index":)").append(std::to_string(index));
  text.append(R"(,"delta":{)").append(delta).append("}");
  text.append(R"(,"logprobs":)").append(logprobs).append(",").append(finish_members(end));
  return text.append("}").append(chunk_back(shape_, so_far));
}

std::string chat_stream::role(std::int32_t index, const token_usage* so_far) const {
  return chunk(index, R"("role":"assistant","content":"")", "null", nullptr, so_far);
}

std::string chat_stream::content(std::int32_t index, std::string_view text,
                                 std::span<const token_info> tokens,
                                 const token_usage* so_far) const {
  const std::string logprobs = shape_.logprobs ? json_text(chat_logprobs(tokens)) : "null";
  return chunk(index, R"("content":)" + json_quoted(text), logprobs, nullptr, so_far);
}

std::string chat_stream::finish(std::int32_t index, const ending& end,
                                const token_usage* so_far) const {
  return chunk(index, {}, "null", &end, so_far);
}

std::string chat_stream::usage(const token_usage& total) const {
  return front_ + R"(],"usage":)" + json_text(usage_object(total)) + "}";
}

std::string chat_completion(const answer_identity& identity,
                            std::span<const answered_choice> choices, const token_usage& total,
                            bool logprobs) {
  ordered_json list = ordered_json::array();
  for (const answered_choice& choice : choices) {
    list.push_back(
        {{"index", choice.index},
         {"message", {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}}},
         {"logprobs", logprobs ? chat_logprobs(choice.tokens) : ordered_json{}},
         {"finish_reason", choice.end.reason},
         {"stop_reason", stop_reason(choice.end)}});
  }
  return whole(identity, "chat.completion", std::move(list), total);
}

// ---- completions -----------------------------------------------------------

completion_stream::completion_stream(const answer_identity& identity, stream_shape shape)
    : front_(chunk_front(identity, "text_completion")), shape_(shape) {}

std::string completion_stream::chunk(std::int32_t index, std::string_view text,
                                     std::string_view logprobs, const ending* end,
                                     const token_usage* so_far) const {
  std::string json = front_;
  json.append(R"({"index":)").append(std::to_string(index));
  json.append(R"(,"text":)").append(json_quoted(text));
  json.append(R"(,"logprobs":)").append(logprobs).append(",").append(finish_members(end));
  if (end == nullptr) json.append(R"(,"stop_reason":null)");
  return json.append("}").append(chunk_back(shape_, so_far));
}

std::string completion_stream::content(std::int32_t index, std::string_view text,
                                       std::span<const token_info> tokens,
                                       const token_usage* so_far) {
  if (!shape_.logprobs) return chunk(index, text, "null", nullptr, so_far);
  const auto place = static_cast<std::size_t>(index);
  if (place >= offsets_.size()) offsets_.resize(place + 1);
  const auto logprobs = json_text(completion_logprobs(tokens, offsets_[place]));
  return chunk(index, text, logprobs, nullptr, so_far);
}

std::string completion_stream::finish(std::int32_t index, const ending& end,
                                      const token_usage* so_far) const {
  return chunk(index, {}, "null", &end, so_far);
}

std::string completion_stream::usage(const token_usage& total) const {
  return front_ + R"(],"usage":)" + json_text(usage_object(total)) + "}";
}

std::string text_completion(const answer_identity& identity,
                            std::span<const answered_choice> choices, const token_usage& total,
                            bool logprobs) {
  ordered_json list = ordered_json::array();
  for (const answered_choice& choice : choices) {
    text_offsets offsets;
    list.push_back(
        {{"index", choice.index},
         {"text", choice.text},
         {"logprobs", logprobs ? completion_logprobs(choice.tokens, offsets) : ordered_json{}},
         {"finish_reason", choice.end.reason},
         {"stop_reason", stop_reason(choice.end)}});
  }
  return whole(identity, "text_completion", std::move(list), total);
}

// ---- small endpoints -------------------------------------------------------

std::string models_list(std::span<const std::string> names, std::int64_t created_s,
                        token_count max_model_len) {
  ordered_json list = ordered_json::array();
  for (const std::string& name : names) list.push_back(card(name, created_s, max_model_len));
  return json_text({{"object", "list"}, {"data", std::move(list)}});
}

std::string model_card(std::string_view name, std::int64_t created_s, token_count max_model_len) {
  return json_text(card(name, created_s, max_model_len));
}

std::string tokenize_answer(std::span<const token_id> tokens, token_count max_model_len,
                            const std::vector<std::string>* texts) {
  ordered_json strings;
  if (texts != nullptr) {
    strings = ordered_json::array();
    for (const std::string& text : *texts) strings.push_back(valid_utf8(text));
  }
  return json_text({{"count", tokens.size()},
                    {"max_model_len", max_model_len.raw()},
                    {"tokens", std::vector<token_id>(tokens.begin(), tokens.end())},
                    {"token_strs", std::move(strings)}});
}

std::string detokenize_answer(std::string_view text) {
  return json_text({{"prompt", text}});
}

std::string version_answer(std::string_view version) {
  return json_text({{"version", version}});
}

}  // namespace octavo::api
