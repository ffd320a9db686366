// A request while it runs: see generation.hpp.
#include "web/gateway/generation.hpp"

#include <algorithm>

namespace octavo::gateway {

api::ending ending_of(reason why, const generation& of, std::int32_t index) {
  api::ending end;
  if (why == reason::finished_length || why == reason::finished_kv_exhausted) end.reason = "length";
  if (why == reason::finished_cancelled) end.reason = "abort";
  if (why != reason::finished_stop) return end;
  const auto at = static_cast<std::size_t>(index);
  const auto& stops = of.request.sampling.stop_token_ids;
  if (std::ranges::find(stops, of.last_token[at]) != stops.end()) {
    end.stop_reason = of.last_token[at];
  } else if (!of.stop_search.empty()) {
    end.stop_reason = of.stop_search[at].found_stop();
  }
  return end;
}

api::api_error error_of(reason why, std::int64_t a, std::int64_t b) {
  const std::string text = sentence(why, a, b);
  switch (why) {
    case reason::rejected_queue_full:
    case reason::rejected_draining:
      return api::overloaded(text);
    case reason::rejected_never_fits:
    case reason::rejected_too_long:
      return api::invalid_request("prompt", text, "context_length_exceeded");
    case reason::rejected_invalid:
      return api::invalid_request("", text);
    default:
      return api::server_error(text);
  }
}

}  // namespace octavo::gateway
