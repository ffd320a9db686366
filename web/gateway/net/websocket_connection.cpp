// From frames to the session, and its messages to frames.
#include "web/gateway/net/websocket_connection.hpp"

namespace octavo::net {
namespace {

constexpr std::uint16_t invalid_payload = 1007;
constexpr std::uint16_t too_big = 1009;
constexpr std::uint16_t internal_error = 1011;
constexpr std::uint16_t try_again_later = 1013;

}  // namespace

websocket_connection::websocket_connection(connection& over,
                                           std::unique_ptr<websocket_session> session,
                                           std::optional<deflate_agreement> agreed)
    : connection_(over),
      state_(over.state()),
      session_(std::move(session)),
      agreed_(std::move(agreed)),
      reader_(state_.options.message_bytes_max, agreed_.has_value()),
      share_(state_) {
  ++state_.websockets;
}

websocket_connection::~websocket_connection() {
  --state_.websockets;
}

void websocket_connection::open(std::string leftover) {
  if (state_.options.ping_interval.count() > 0) {
    connection_.set_deadline(state_.options.ping_interval);
  }
  call_session("opening a WebSocket",
               [this](websocket_session& session) { session.opened(websocket(weak_from_this())); });
  if (!leftover.empty()) receive(leftover);
}

void websocket_connection::receive(std::string_view data) {
  heard_ = true;
  while (connection_.is_open()) {
    auto event = reader_.next(data);
    if (!event) break;
    handle(std::move(*event));
  }
  if (!share_.set(reader_.buffered_bytes())) {
    refuse(try_again_later, "too many messages arrive at once");
  }
}

void websocket_connection::handle(frame_event event) {
  using type = frame_event::type;
  switch (event.what) {
    case type::text:
    case type::binary:
      if (!close_sent_) deliver(std::move(event));
      break;
    case type::ping:
      if (!close_sent_) {
        append_frame(connection_.outbox(), frame_kind::pong, event.payload);
        connection_.appended();
      }
      break;
    case type::pong:
      break;
    case type::close:
      peer_closed(event);
      break;
    case type::violation:
      refuse(event.code, std::move(event.payload));
      break;
  }
}

void websocket_connection::deliver(frame_event event) {
  if (event.compressed && !inflate(event)) return;
  if (event.what == frame_event::type::text) {
    call_session("handling a text message",
                 [&](websocket_session& session) { session.text(std::move(event.payload)); });
  } else {
    call_session("handling a binary message",
                 [&](websocket_session& session) { session.binary(std::move(event.payload)); });
  }
}

bool websocket_connection::inflate(frame_event& event) {
  if (agreed_->client_takeover && !inflater_) {
    inflater_ = std::make_unique<inflater>(agreed_->client_window_bits, true);
  }
  auto& codec = inflater_ ? *inflater_ : state_.shared_inflater();
  std::string content;
  const auto limit = state_.options.message_bytes_max;
  switch (codec.decompress(event.payload, limit, content)) {
    case inflater::result::too_big:
      refuse(too_big, "messages have at most " + std::to_string(limit) + " bytes");
      return false;
    case inflater::result::malformed:
      refuse(invalid_payload, "the message is not deflated");
      return false;
    case inflater::result::ok:
      break;
  }
  if (event.what == frame_event::type::text && !is_utf8(content)) {
    refuse(invalid_payload, "the text is not UTF-8");
    return false;
  }
  event.payload = std::move(content);
  return true;
}

/// Ends the WebSocket for the peer's fault, or for the application's.
void websocket_connection::refuse(std::uint16_t code, std::string reason) {
  send_close(code, reason);
  end_session({code, std::move(reason), false});
  connection_.close_gracefully();
}

void websocket_connection::peer_closed(const frame_event& event) {
  const bool by_peer = !close_sent_;
  send_close(event.code, event.payload);
  end_session({event.code, event.payload, by_peer});
  connection_.close_gracefully();
}

void websocket_connection::send_close(std::uint16_t code, std::string_view reason) {
  if (close_sent_ || !connection_.is_open()) return;
  append_frame(connection_.outbox(), frame_kind::close, close_payload(code, reason));
  connection_.appended();
  close_sent_ = true;
}

void websocket_connection::call_session(std::string_view what,
                                        const std::function<void(websocket_session&)>& call) {
  if (!session_) return;
  if (!state_.guarded(what, [&] { call(*session_); })) {
    refuse(internal_error, "the server failed");
  }
}

void websocket_connection::end_session(const close_event& event) {
  const auto session = std::move(session_);
  on_drain_ = nullptr;
  if (session) state_.guarded("closing a WebSocket", [&] { session->closed(event); });
}

bool websocket_connection::send(frame_kind kind, std::string_view message) {
  if (!is_open()) return false;
  if (!agreed_ || message.size() < state_.options.deflate_bytes_min) {
    append_frame(connection_.outbox(), kind, message);
  } else {
    if (agreed_->server_takeover && !deflater_) {
      deflater_ = std::make_unique<deflater>(agreed_->server_window_bits, true);
    }
    auto& codec = deflater_ ? *deflater_ : state_.shared_deflater(agreed_->server_window_bits);
    append_frame(connection_.outbox(), kind, codec.compress(message), true);
  }
  connection_.appended();
  return is_open();
}

void websocket_connection::close(std::uint16_t code, std::string_view reason) {
  if (!is_open()) return;
  send_close(is_sendable_close_code(code) ? code : internal_error, reason);
  // Until the frame is out; then drained() gives the peer its time.
  connection_.set_deadline(state_.options.write_timeout);
}

void websocket_connection::shut_down(std::uint16_t code, std::string_view reason) {
  shutting_down_ = true;
  close(code, reason);
}

/// Silence: pings first, gives up then. While the outbox is congested nothing is
/// read, so nothing can be heard either, and the write deadline decides.
void websocket_connection::deadline_passed() {
  if (close_sent_) return connection_.close();
  if (heard_ || connection_.is_congested()) {
    heard_ = pinged_ = false;
    return connection_.set_deadline(state_.options.ping_interval);
  }
  if (pinged_) return connection_.close();
  pinged_ = true;
  append_frame(connection_.outbox(), frame_kind::ping, {});
  connection_.appended();
  connection_.set_deadline(state_.options.pong_timeout);
}

void websocket_connection::drained() {
  if (close_sent_ && !shutting_down_ && pending_bytes() == 0) {
    connection_.set_deadline(state_.options.close_timeout);
  }
  report_drained();
}

void websocket_connection::report_drained() {
  if (!on_drain_ || pending_bytes() > drain_bytes_) return;
  const auto callback = std::exchange(on_drain_, nullptr);
  state_.guarded("a drain callback", callback);
}

void websocket_connection::on_drain(std::size_t bytes, std::function<void()> callback) {
  drain_bytes_ = bytes;
  on_drain_ = std::move(callback);
  if (pending_bytes() <= bytes) {
    connection_.later([self = shared_from_this()] { self->report_drained(); });
  }
}

void websocket_connection::gone() {
  end_session({});
}

bool websocket::send_text(std::string_view message) {
  const auto connection = connection_.lock();
  return connection && connection->send(frame_kind::text, message);
}

bool websocket::send_binary(std::string_view message) {
  const auto connection = connection_.lock();
  return connection && connection->send(frame_kind::binary, message);
}

void websocket::close(std::uint16_t code, std::string_view reason) {
  if (const auto connection = connection_.lock()) connection->close(code, reason);
}

std::size_t websocket::pending_bytes() const {
  const auto connection = connection_.lock();
  return connection ? connection->pending_bytes() : 0;
}

bool websocket::open() const {
  const auto connection = connection_.lock();
  return connection && connection->is_open();
}

void websocket::on_drain(std::size_t bytes, std::function<void()> callback) {
  if (const auto connection = connection_.lock()) {
    connection->on_drain(bytes, std::move(callback));
  }
}

}  // namespace octavo::net
