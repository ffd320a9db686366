// See token_logprobs.hpp.
#include "web/gateway/api/token_logprobs.hpp"

#include <array>

#include "model/tokenizer/utf8.hpp"
#include "web/gateway/api/json_text.hpp"

namespace octavo::api {
namespace {

using nlohmann::ordered_json;

/// In place of −∞, which JSON cannot say; vLLM's value.
constexpr double lowest_logprob = -9999.0;

ordered_json logprob_value(float logprob) {
  const double value = shortest(logprob, lowest_logprob);
  return value < lowest_logprob ? lowest_logprob : value;
}

ordered_json byte_list(std::string_view bytes) {
  ordered_json list = ordered_json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

ordered_json entry(std::string_view bytes, float logprob) {
  return {{"token", valid_utf8(bytes)},
          {"logprob", logprob_value(logprob)},
          {"bytes", byte_list(bytes)}};
}

std::string legacy_token(std::string_view bytes) {
  if (!model::first_invalid_utf8(bytes)) return std::string{bytes};
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "bytes:";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text.append("\\x").append({digits[value >> 4U], digits[value & 15U]});
  }
  return text;
}

ordered_json legacy_top(const token_info& token) {
  if (!token.logprob) return nullptr;
  ordered_json top = ordered_json::object();
  for (const alternative& other : token.top) {
    // Tokens may read alike; the likelier keeps the name.
    const std::string name = legacy_token(other.bytes);
    if (!top.contains(name)) top[name] = logprob_value(other.logprob);
  }
  const std::string name = legacy_token(token.bytes);
  if (!top.contains(name)) top[name] = logprob_value(*token.logprob);
  return top;
}

}  // namespace

std::int64_t text_offsets::next(std::string_view bytes) {
  const std::int64_t begin = code_points_;
  std::string complete;
  text_.push(bytes, complete);
  for (const char byte : complete)
    code_points_ += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80;
  return begin;
}

ordered_json response_logprobs(std::span<const token_info> tokens) {
  ordered_json list = ordered_json::array();
  for (const token_info& token : tokens) {
    ordered_json one = entry(token.bytes, token.logprob.value_or(0));
    ordered_json top = ordered_json::array();
    for (const alternative& other : token.top) top.push_back(entry(other.bytes, other.logprob));
    one["top_logprobs"] = std::move(top);
    list.push_back(std::move(one));
  }
  return list;
}

ordered_json chat_logprobs(std::span<const token_info> tokens) {
  return {{"content", response_logprobs(tokens)}};
}

ordered_json completion_logprobs(std::span<const token_info> tokens, text_offsets& offsets) {
  ordered_json names = ordered_json::array();
  ordered_json logprobs = ordered_json::array();
  ordered_json tops = ordered_json::array();
  ordered_json places = ordered_json::array();
  for (const token_info& token : tokens) {
    names.push_back(legacy_token(token.bytes));
    logprobs.push_back(token.logprob ? logprob_value(*token.logprob) : ordered_json{});
    tops.push_back(legacy_top(token));
    places.push_back(offsets.next(token.in_text ? std::string_view{token.bytes} : ""));
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(places)}};
}

}  // namespace octavo::api
