// Server-sent events (HTML Living Standard, §9.2) as OpenAI clients read them.
#pragma once

#include <string>
#include <string_view>

namespace octavo::api {

inline constexpr std::string_view sse_content_type = "text/event-stream; charset=utf-8";
/// Ends a stream of chunks.
inline constexpr std::string_view sse_done = "data: [DONE]\n\n";
/// A comment, so that nothing between server and client takes silence for death.
inline constexpr std::string_view sse_heartbeat = ": ping\n\n";

/// An event of one line of JSON; `name` is left out where it is empty.
[[nodiscard]] inline std::string sse_event(std::string_view json, std::string_view name = {}) {
  std::string text;
  text.reserve(json.size() + name.size() + 18);
  if (!name.empty()) text.append("event: ").append(name).append("\n");
  text.append("data: ").append(json).append("\n\n");
  return text;
}

}  // namespace octavo::api
