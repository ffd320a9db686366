// Names of answers, "chatcmpl-…": unguessable enough to tell servers apart, and from
// which the engine's own name of the request can be read back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "web/gateway/api/answer_parts.hpp"
#include "web/gateway/api/generation_request.hpp"
#include "web/gateway/hub.hpp"

namespace octavo::gateway {

class identities {
 public:
  explicit identities(const hub_clocks& clocks);

  [[nodiscard]] api::answer_identity make(api::endpoint_kind endpoint, request_id first,
                                          const std::string& model) const;
  /// The engine's name behind an answer's; nothing where it is none of this server's.
  [[nodiscard]] std::optional<request_id> request_of(std::string_view answer_id) const;

 private:
  std::function<std::int64_t()> unix_seconds_;
  std::string server_;  ///< 16 hexadecimal digits
};

}  // namespace octavo::gateway
