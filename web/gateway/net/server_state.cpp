// Shared codecs and the error body.
#include "web/gateway/net/server_state.hpp"

#include <nlohmann/json.hpp>

namespace octavo::net {
namespace {

constexpr int window_bits_max = 15;

response default_error(int status, std::string_view message) {
  const nlohmann::json body{{"error",
                             {{"message", message},
                              {"type", status < 500 ? "invalid_request_error" : "server_error"},
                              {"param", nullptr},
                              {"code", nullptr}}}};
  return {status, {{"Content-Type", "application/json"}}, body.dump() + "\n"};
}

}  // namespace

deflater& server_state::shared_deflater(int window_bits) {
  auto& slot = deflaters_[window_bits];
  if (!slot) slot = std::make_unique<deflater>(window_bits, false);
  return *slot;
}

inflater& server_state::shared_inflater() {
  if (!inflater_) inflater_ = std::make_unique<inflater>(window_bits_max, false);
  return *inflater_;
}

response server_state::error_response(int status, std::string_view message) const {
  response made;
  const bool formatted = app.error_response && guarded("the error formatter", [&] {
                           made = app.error_response(status, message);
                           validate_response_headers(made.headers);
                         });
  if (!formatted) made = default_error(status, message);
  made.status = status;
  return made;
}

}  // namespace octavo::net
