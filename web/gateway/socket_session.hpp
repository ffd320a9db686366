// One client's WebSocket at /v1/responses: OpenAI's events of Responses over WebSocket,
// with client-chosen ids so that one socket carries many responses at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "web/gateway/api/parse.hpp"
#include "web/gateway/hub.hpp"
#include "web/gateway/net/handles.hpp"

namespace octavo::gateway {

/// Responses that one socket may carry at once.
inline constexpr std::size_t responses_per_socket_max = 256;

/// Says whether one more request of this client may begin (throws api_error), and hears
/// when it is over.
struct admission_gate {
  std::function<void()> enter;
  std::function<void()> leave;
};

class socket_answer;

class socket_session final : public net::websocket_session {
 public:
  /// `identify` names a response by the engine's name of it. Hub and gate outlive this.
  socket_session(
      hub& requests, admission_gate gate,
      std::function<api::answer_identity(request_id, const std::string& model)> identify);
  ~socket_session() override;

  void opened(net::websocket socket) override;
  void text(std::string message) override;
  void binary(std::string message) override;
  void closed(const net::close_event& event) override;

 private:
  friend class socket_answer;
  /// A client's name of a response, or where it gave none, a number of ours: whether it is
  /// the client's, and the name.
  using response_key = std::pair<bool, std::string>;
  struct running {
    std::uint64_t number = 0;
    socket_answer* answer = nullptr;  ///< none while the prompt is being prepared
  };

  void create(const api::client_event& event);
  void cancel(const std::string& id);
  void send(const std::string& event) { socket_.send_text(event); }
  /// Whether texts should be kept for now; then they are asked for when there is room.
  bool is_congested();
  void send_held();
  void over(const response_key& key);

  hub& hub_;
  admission_gate gate_;
  std::function<api::answer_identity(request_id, const std::string&)> identify_;
  net::websocket socket_;
  std::map<response_key, running> running_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  std::uint64_t unnamed_ = 0;
  bool waits_ = false;
};

}  // namespace octavo::gateway
