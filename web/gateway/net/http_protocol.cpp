// From parsed requests to the application, and its answers to bytes.
#include "web/gateway/net/http_protocol.hpp"

#include <array>
#include <charconv>

#include "web/gateway/net/deflate_offer.hpp"
#include "web/gateway/net/handshake.hpp"
#include "web/gateway/net/websocket_connection.hpp"

namespace octavo::net {

http_protocol::http_protocol(connection& over)
    : connection_(over), state_(over.state()), parser_(over.state().options), share_(over.state()) {
  connection_.set_deadline(state_.options.header_timeout);
}

void http_protocol::receive(std::string_view data) {
  buffer_.append(data);
  process();
  // Not to read would be not to notice that the client is gone.
  if (answering_ && buffer_.size() > state_.options.pipelined_bytes_max) {
    state_.log(connection_.remote_address() + ": too much waits behind an answer; closing");
    connection_.close();
  }
}

bool http_protocol::wants_bytes() const {
  return !connection_.is_congested();
}

/// Parses and serves what is there, as far as answers are complete.
void http_protocol::process() {
  if (processing_) return;
  processing_ = true;
  std::size_t at = 0;
  while (!answering_ && at < buffer_.size() && connection_.is_open() &&
         !connection_.is_congested()) {
    const bool begun = parser_.begun();
    at += parser_.feed(std::string_view(buffer_).substr(at));
    switch (parser_.now()) {
      case request_parser::state::head:
        if (!begun && parser_.begun()) connection_.set_deadline(state_.options.header_timeout);
        break;
      case request_parser::state::body:
        if (!in_body_) {
          in_body_ = true;
          if (at == buffer_.size()) head_arrived();
          connection_.set_deadline(state_.options.body_timeout);
        }
        if (!share_.set(parser_.head().body.size())) {
          fail({503, "too many bodies arrive at once; try again later"});
        }
        break;
      case request_parser::state::complete:
        buffer_.erase(0, at);
        at = 0;
        dispatch();
        break;
      case request_parser::state::failed:
        fail(parser_.failure());
        break;
    }
  }
  buffer_.erase(0, at);
  if (buffer_.empty()) buffer_ = {};
  processing_ = false;
}

void http_protocol::process_later() {
  connection_.later([self = shared_from_this()] { self->process(); });
}

/// The head is complete, and of the body nothing has come yet.
void http_protocol::head_arrived() {
  if (parser_.expects_continue()) connection_.send("HTTP/1.1 100 Continue\r\n\r\n");
}

void http_protocol::dispatch() {
  keep_alive_ = parser_.keep_alive();
  request asked = parser_.take();
  asked.remote_address = connection_.remote_address();
  asked.secure = state_.secure;
  head_only_ = asked.method == "HEAD";
  version_minor_ = asked.version_minor;
  in_body_ = false;
  answering_ = true;
  streaming_ = false;
  share_.set(0);
  connection_.clear_deadline();
  if (state_.app.on_upgrade && is_websocket_upgrade(asked)) return upgrade(asked);
  call_application(std::move(asked));
}

void http_protocol::call_application(request asked) {
  auto made = std::make_shared<exchange>(weak_from_this(), connection_.executor());
  exchange_ = made;
  const bool done = state_.guarded(
      "the request handler", [&] { state_.app.on_request(std::move(asked), responder(made)); });
  if (done || !made->open()) return;
  if (made->begun()) return made->abort();
  made->send(state_.error_response(500, "the server failed to handle the request"));
}

void http_protocol::upgrade(const request& asked) {
  if (const auto objection = handshake_objection(asked)) {
    auto refusal = state_.error_response(objection->status, objection->message);
    if (objection->status == 426) refusal.headers.set("Sec-WebSocket-Version", "13");
    report_refusal(objection->status);
    return answer(refusal);
  }
  upgrade_decision decision;
  bool usable = state_.guarded("the upgrade handler", [&] {
    decision = state_.app.on_upgrade(asked);
    if (const auto* refusal = std::get_if<response>(&decision)) {
      validate_response_headers(refusal->headers);
    }
  });
  auto* accepted = std::get_if<websocket_acceptance>(&decision);
  if (usable && accepted != nullptr && accepted->session) {
    usable = state_.guarded("accepting a WebSocket",
                            [&] { accept_websocket(asked, std::move(*accepted)); });
    if (usable) return;
  }
  const auto* refusal = std::get_if<response>(&decision);
  answer(usable && refusal != nullptr
             ? *refusal
             : state_.error_response(500, "the server failed to handle the request"));
}

void http_protocol::accept_websocket(const request& asked, websocket_acceptance accepted) {
  std::optional<deflate_agreement> agreed;
  if (accepted.deflate) {
    agreed = negotiate_deflate(asked.headers.joined("Sec-WebSocket-Extensions"),
                               state_.options.deflate_takeover);
  }
  const auto head = handshake_answer(asked, accepted.headers, accepted.subprotocol,
                                     agreed ? agreed->text() : std::string());
  auto socket =
      std::make_shared<websocket_connection>(connection_, std::move(accepted.session), agreed);
  connection_.send(head);
  connection_.become(socket);
  socket->open(std::exchange(buffer_, {}));
}

void http_protocol::fail(const request_failure& failure) {
  auto refusal = state_.error_response(failure.status, failure.message);
  if (failure.status == 405) {
    refusal.headers.set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  }
  keep_alive_ = false;
  head_only_ = false;
  answering_ = true;
  report_refusal(failure.status);
  answer(refusal);
}

void http_protocol::report_refusal(int status) {
  if (!state_.app.on_refusal) return;
  state_.guarded("a refusal callback", [&] { state_.app.on_refusal(status); });
}

header_list http_protocol::own_headers() {
  if (state_.draining) keep_alive_ = false;
  header_list own;
  if (!keep_alive_) {
    own.add("Connection", "close");
  } else if (version_minor_ == 0) {
    own.add("Connection", "keep-alive");
  }
  return own;
}

void http_protocol::answer(const response& whole) {
  const bool has_body = whole.status != 204 && whole.status != 304;
  auto own = own_headers();
  if (has_body) own.add("Content-Length", std::to_string(whole.body.size()));
  connection_.send(format_head(whole.status, whole.headers, own));
  if (has_body && !head_only_) connection_.send(whole.body);
  answered();
}

void http_protocol::begin_stream(int status, const header_list& headers) {
  streaming_ = true;
  chunked_ = version_minor_ >= 1;
  if (!chunked_) keep_alive_ = false;
  auto own = own_headers();
  if (chunked_) own.add("Transfer-Encoding", "chunked");
  connection_.send(format_head(status, headers, own));
}

bool http_protocol::write(std::string_view piece) {
  if (!connection_.is_open()) return false;
  // An empty chunk would end the body.
  if (head_only_ || piece.empty()) return true;
  auto& out = connection_.outbox();
  if (chunked_) {
    std::array<char, 16> digits;
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), piece.size(), 16).ptr;
    out.append(digits.data(), end).append("\r\n").append(piece).append("\r\n");
  } else {
    out.append(piece);
  }
  connection_.appended();
  return connection_.is_open();
}

void http_protocol::end() {
  if (chunked_ && !head_only_) connection_.send("0\r\n\r\n");
  answered();
}

void http_protocol::answered() {
  answering_ = false;
  exchange_.reset();
  if (!keep_alive_) return connection_.close_gracefully();
  connection_.set_deadline(state_.options.idle_timeout);
  if (!processing_ && !buffer_.empty()) process_later();
  connection_.later([this, self = shared_from_this()] { connection_.resume(); });
}

void http_protocol::abandoned(const std::function<void(int status)>& on_begin) {
  if (!answering_ || !exchange_.expired() || !connection_.is_open()) return;
  state_.log("a request was dropped without an answer");
  if (streaming_) return connection_.close();
  answer(state_.error_response(500, "the server dropped the request"));
  if (on_begin) state_.guarded("a begin callback", [&] { on_begin(500); });
}

void http_protocol::deadline_passed() {
  if (is_idle()) return connection_.close_gracefully();
  fail({408, in_body_ ? "the body did not arrive in time" : "the headers did not arrive in time"});
}

// Who generates cancels for a client that is gone; other answers are short.
protocol::ending http_protocol::end_of_input() {
  if (!answering_) return ending::flushed;
  const auto current = exchange_.lock();
  if (current == nullptr || current->watches_client()) return ending::at_once;
  keep_alive_ = false;
  return ending::answered;
}

void http_protocol::report_drained_later() {
  connection_.later([self = shared_from_this()] { self->drained(); });
}

void http_protocol::drained() {
  if (!answering_ && !processing_ && !buffer_.empty()) process_later();
  if (const auto current = exchange_.lock()) {
    state_.guarded("a drain callback", [&] { current->drained(connection_.pending_bytes()); });
  }
}

void http_protocol::drain() {
  if (is_idle()) connection_.close_gracefully();
}

void http_protocol::shut_down(std::uint16_t, std::string_view) {
  if (answering_) return connection_.close();
  connection_.close_gracefully();
}

void http_protocol::gone() {
  if (const auto current = exchange_.lock()) {
    state_.guarded("a close callback", [&] { current->lost(); });
  }
}

}  // namespace octavo::net
