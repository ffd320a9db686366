// Conversations as clients write them, to what chat templates take: a role and a text.
// Internal to this folder.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "web/gateway/api/fields.hpp"
#include "web/gateway/api/generation_request.hpp"
#include "web/gateway/api/limits.hpp"

namespace octavo::api {

/// The messages of a list, for a template. Contents that come in parts are put together
/// with line ends between them, as vLLM does; parts other than text, and messages of tools,
/// are refused by name. The role "developer" becomes "system", which templates know.
[[nodiscard]] nlohmann::ordered_json read_messages(const nlohmann::json& list,
                                                   const std::string& path, const limits& bounds);

/// More names for a template (chat_template_kwargs); null where there are none.
[[nodiscard]] nlohmann::ordered_json read_variables(fields& body);

/// Those messages with the fields of `body` that say how the template is used.
[[nodiscard]] conversation read_conversation(fields& body, const nlohmann::json& messages,
                                             const limits& bounds);

/// The same as read_messages() from `input` of a response: a text, or a list of message items.
[[nodiscard]] nlohmann::ordered_json read_input(const nlohmann::json& input,
                                                const std::string& path, const limits& bounds);

}  // namespace octavo::api
