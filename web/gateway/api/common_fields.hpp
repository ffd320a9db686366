// Fields that chat completions, completions and responses share. Internal to this folder.
#pragma once

#include "web/gateway/api/fields.hpp"
#include "web/gateway/api/generation_request.hpp"
#include "web/gateway/api/limits.hpp"

namespace octavo::api {

/// The model's served name: the one given, or the first. 404 for any other.
[[nodiscard]] std::string read_model(fields& body, const limits& bounds);

/// Reads sampling, stops, priority, salt and user into `request`, on top of the defaults;
/// refuses what no endpoint supports. Log-probabilities are the endpoints' own.
void read_common(fields& body, const limits& bounds, generation_request& request);

/// stream and stream_options.
void read_stream(fields& body, generation_request& request);

/// Refuses more sequences than one request may have, and min_tokens above max_tokens.
void check_common(const generation_request& request, const limits& bounds);

/// The most that a limit of generated tokens can say.
inline constexpr std::int64_t max_tokens_most = 2147483647;

}  // namespace octavo::api
