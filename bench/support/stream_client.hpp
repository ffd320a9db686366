// A client of streamed answers that costs little: WebSocket without compression
// (RFC 6455), or server-sent events over HTTP. Thousands share one thread and one
// buffer, so that a load test measures the server and not its client.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include "tests/support/raw_client.hpp"

namespace octavo::bench {

using moment = std::chrono::steady_clock::time_point;

enum class wire_kind : std::uint8_t { websocket, events };

class stream_client;

/// What clients tell. A call may let its client vanish.
class stream_listener {
 public:
  virtual ~stream_listener() = default;
  /// Requests can be sent.
  virtual void opened(stream_client& by) = 0;
  /// One text message or event; `at` is when its last byte was read.
  virtual void message(stream_client& by, std::string_view json, moment at) = 0;
  /// The other side has ended it, or broke the protocol. Not called after vanish().
  virtual void ended(stream_client& by, const std::string& why) = 0;
};

class stream_client : public std::enable_shared_from_this<stream_client> {
 public:
  /// `number` is for the listener; `scratch` is shared by all clients of the thread.
  stream_client(asio::io_context& io, std::span<char> scratch, wire_kind kind,
                stream_listener& hears, std::size_t number)
      : socket_(io), scratch_(scratch), kind_(kind), hears_(hears), number_(number) {}

  void connect(std::uint16_t port) {
    const asio::ip::tcp::endpoint where{asio::ip::address_v4::loopback(), port};
    socket_.async_connect(where, [self = shared_from_this()](const asio::error_code& error) {
      if (error) return self->end("cannot connect: " + error.message());
      self->begin();
    });
  }

  /// Sends a request: a WebSocket message, or the body of POST /v1/completions.
  void ask(std::string_view json) {
    if (kind_ == wire_kind::websocket) return write(testing::raw_client::masked_frame(0x81, json));
    write(
        "POST /v1/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
        "Content-Length: " +
        std::to_string(json.size()) + "\r\n\r\n" + std::string{json});
  }

  /// Closes without a word; `resets` does not even leave what was sent in order.
  void vanish(bool resets) {
    asio::error_code ignored;
    if (resets) socket_.set_option(asio::socket_base::linger{true, 0}, ignored);
    socket_.close(ignored);
  }

  [[nodiscard]] std::size_t number() const { return number_; }
  [[nodiscard]] wire_kind kind() const { return kind_; }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }

 private:
  /// A frame or event at the front of what was read, and how many bytes it takes.
  struct piece {
    std::size_t bytes = 0;
    int opcode = 1;
    std::string_view payload;
  };

  void begin() {
    asio::error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(asio::ip::tcp::no_delay{true}, ignored);
    if (kind_ == wire_kind::websocket) {
      write(
          "GET /v1/responses HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\n"
          "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    } else {
      hears_.opened(*this);
    }
    wait();
  }

  // Requests are small and few: a kernel buffer always has room for one.
  void write(std::string_view bytes) {
    asio::error_code error;
    const auto sent = socket_.write_some(asio::buffer(bytes), error);
    if (error || sent < bytes.size()) end("cannot send: " + error.message());
  }

  void wait() {
    if (!is_open()) return;
    socket_.async_wait(socket_.wait_read, [self = shared_from_this()](const asio::error_code& e) {
      if (e || !self->is_open()) return;
      self->read();
      self->wait();
    });
  }

  void read() {
    asio::error_code error;
    const auto got = socket_.read_some(asio::buffer(scratch_.data(), scratch_.size()), error);
    if (error == asio::error::would_block) return;
    if (error) return end(error.message());
    const moment now = std::chrono::steady_clock::now();
    const std::string_view fresh{scratch_.data(), got};
    if (rest_.empty()) {
      rest_ = fresh.substr(take(fresh, now));
    } else {
      rest_ += fresh;
      rest_.erase(0, take(rest_, now));
    }
  }

  /// Returns how many bytes need not be kept.
  std::size_t take(std::string_view data, moment now) {
    std::size_t used = 0;
    if (!answered_) {
      const auto end_of_head = data.find("\r\n\r\n");
      if (end_of_head == std::string_view::npos) return 0;
      used = end_of_head + 4;
      answered_ = true;
      if (!accept_head(data.substr(0, used))) return data.size();
    }
    while (is_open()) {
      const auto next =
          kind_ == wire_kind::websocket ? frame(data.substr(used)) : event(data.substr(used));
      if (!next) return used;
      used += next->bytes;
      handle(*next, now);
    }
    return data.size();
  }

  bool accept_head(std::string_view head) {
    const bool websocket = kind_ == wire_kind::websocket;
    // The key above and this answer are the example of RFC 6455 §1.3.
    const bool good = websocket ? head.starts_with("HTTP/1.1 101") &&
                                      head.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") != head.npos
                                : head.starts_with("HTTP/1.1 200");
    if (!good) end("refused: " + std::string{head.substr(0, head.find('\r'))});
    if (good && websocket) hears_.opened(*this);
    return good;
  }

  static std::optional<piece> frame(std::string_view data) {
    if (data.size() < 2) return std::nullopt;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(data[i]); };
    std::size_t size = byte(1);
    std::size_t head = 2;
    if (size >= 126) {
      head += size == 126 ? 2 : 8;
      if (data.size() < head) return std::nullopt;
      size = 0;
      for (std::size_t i = 2; i < head; ++i) size = size << 8U | byte(i);
    }
    if (data.size() < head + size) return std::nullopt;
    return piece{head + size, byte(0), data.substr(head, size)};
  }

  // Marks of chunks lie between events and are passed over, for no event is cut by one.
  static std::optional<piece> event(std::string_view data) {
    const auto end = data.find("\n\n");
    if (end == std::string_view::npos) return std::nullopt;
    const auto begin = data.find("data: ");
    return piece{end + 2, 0x81, begin < end ? data.substr(begin + 6, end - begin - 6) : ""};
  }

  void handle(const piece& what, moment now) {
    switch (what.opcode) {
      case 0x81:
        if (!what.payload.empty()) hears_.message(*this, what.payload, now);
        break;
      case 0x89:
        write(testing::raw_client::masked_frame(0x8a, what.payload));
        break;
      case 0x8a:
        break;
      case 0x88:
        end("closed: " +
            std::string{what.payload.substr(std::min<std::size_t>(2, what.payload.size()))});
        break;
      default:
        end("frame " + std::to_string(what.opcode) + " is not understood");
    }
  }

  void end(const std::string& why) {
    if (!is_open()) return;
    asio::error_code ignored;
    socket_.close(ignored);
    hears_.ended(*this, why);
  }

  asio::ip::tcp::socket socket_;
  std::span<char> scratch_;
  wire_kind kind_;
  stream_listener& hears_;
  std::size_t number_;
  std::string rest_;  ///< read, but not yet a whole frame or event
  bool answered_ = false;
};

}  // namespace octavo::bench
