// A WebSocket on one connection: messages, pings, compression and the close
// handshake (RFC 6455, RFC 7692). Internal to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "web/gateway/net/connection.hpp"
#include "web/gateway/net/deflate.hpp"
#include "web/gateway/net/deflate_offer.hpp"
#include "web/gateway/net/framing.hpp"
#include "web/gateway/net/handles.hpp"

namespace octavo::net {

class websocket_connection final : public protocol,
                                   public std::enable_shared_from_this<websocket_connection> {
 public:
  websocket_connection(connection& over, std::unique_ptr<websocket_session> session,
                       std::optional<deflate_agreement> agreed);
  ~websocket_connection() override;

  /// The 101 is queued; `leftover` came right behind the request.
  void open(std::string leftover);

  void receive(std::string_view data) override;
  ending end_of_input() override { return ending::at_once; }
  void deadline_passed() override;
  bool wants_bytes() const override { return !connection_.is_congested(); }
  void drained() override;
  void drain() override {}
  void shut_down(std::uint16_t code, std::string_view reason) override;
  void gone() override;

  // For the handle.
  bool send(frame_kind kind, std::string_view message);
  void close(std::uint16_t code, std::string_view reason);
  void on_drain(std::size_t bytes, std::function<void()> callback);
  [[nodiscard]] std::size_t pending_bytes() const { return connection_.pending_bytes(); }
  [[nodiscard]] bool is_open() const { return !close_sent_ && connection_.is_open(); }

 private:
  void handle(frame_event event);
  void deliver(frame_event event);
  /// Replaces a compressed payload by its content. False where it was refused.
  bool inflate(frame_event& event);
  void refuse(std::uint16_t code, std::string reason);
  void peer_closed(const frame_event& event);
  void send_close(std::uint16_t code, std::string_view reason);
  void end_session(const close_event& event);
  void call_session(std::string_view what, const std::function<void(websocket_session&)>& call);
  void report_drained();

  connection& connection_;
  server_state& state_;
  std::unique_ptr<websocket_session> session_;
  std::optional<deflate_agreement> agreed_;
  frame_reader reader_;
  received_share share_;  ///< of the message under way
  // Only with context takeover, and once used.
  std::unique_ptr<deflater> deflater_;
  std::unique_ptr<inflater> inflater_;
  std::function<void()> on_drain_;
  std::size_t drain_bytes_ = 0;
  bool heard_ = true;  ///< since the deadline was last set
  bool pinged_ = false;
  bool close_sent_ = false;
  bool shutting_down_ = false;
};

}  // namespace octavo::net
