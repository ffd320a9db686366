// A client of HTTP and WebSocket that sends any bytes, right or wrong, and shares
// no code with the server. Waits are bounded: a read that gets nothing for ten
// seconds throws.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace octavo::testing {

struct raw_response {
  int status = 0;
  std::string head;  ///< status line and headers
  std::string body;  ///< of chunked ones, joined
};

struct raw_frame {
  int opcode = 0;
  bool fin = false;
  bool rsv1 = false;
  std::string payload;

  /// Of a close frame; 0 where it has none.
  int close_code() const {
    if (payload.size() < 2) return 0;
    return static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
  }
};

class raw_client {
 public:
  /// `receive_bytes`: size of the kernel's buffer, 0 for the usual one.
  explicit raw_client(std::uint16_t port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) option(SOL_SOCKET, SO_RCVBUF, receive_bytes);
    option(IPPROTO_TCP, TCP_NODELAY, 1);
    const timeval patience{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect");
    }
  }
  ~raw_client() { close(); }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void half_close() { ::shutdown(socket_, SHUT_WR); }
  /// Closes with a reset instead of an orderly end.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

  /// False where the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  std::string read_exactly(std::size_t count) {
    while (received_.size() < count) {
      if (!receive()) throw std::runtime_error("the server closed early");
    }
    auto bytes = received_.substr(0, count);
    received_.erase(0, count);
    return bytes;
  }
  std::string read_until(std::string_view end) {
    auto at = received_.find(end);
    while (at == std::string::npos) {
      if (!receive()) throw std::runtime_error("the server closed early");
      at = received_.find(end);
    }
    return read_exactly(at + end.size());
  }
  /// Everything up to the end of the stream, or to a reset.
  std::string read_all() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }

  raw_response read_response(bool has_body = true) {
    raw_response response;
    response.head = read_until("\r\n\r\n");
    response.status = std::atoi(response.head.c_str() + response.head.find(' '));
    if (!has_body) return response;
    if (response.head.find("Transfer-Encoding: chunked") != std::string::npos) {
      for (;;) {
        const auto size = std::strtoul(read_until("\r\n").c_str(), nullptr, 16);
        response.body += read_exactly(size);
        if (read_exactly(2) != "\r\n") throw std::runtime_error("a chunk has no end");
        if (size == 0) return response;
      }
    }
    const auto length = response.head.find("Content-Length: ");
    if (length != std::string::npos) {
      response.body = read_exactly(std::strtoul(response.head.c_str() + length + 16, nullptr, 10));
    }
    return response;
  }

  /// Sends a request and reads its response.
  raw_response ask(std::string_view bytes) {
    send(bytes);
    return read_response();
  }

  /// Opens a WebSocket. `extra`: further header lines with their ends.
  raw_response upgrade(const std::string& path = "/", const std::string& extra = {}) {
    send("GET " + path +
         " HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         extra + "\r\n");
    return read_response(false);
  }

  bool send_frame(int first_byte, std::string_view payload) {
    return send(masked_frame(first_byte, payload));
  }

  /// `first_byte`: FIN, reserved bits and opcode.
  static std::string masked_frame(int first_byte, std::string_view payload) {
    constexpr std::string_view mask = "\x37\xfa\x21\x3d";
    std::string frame(1, static_cast<char>(first_byte));
    if (payload.size() < 126) {
      frame += static_cast<char>(0x80 | payload.size());
    } else {
      const int bytes = payload.size() < 65536 ? 2 : 8;
      frame += static_cast<char>(bytes == 2 ? 0xfe : 0xff);
      for (int i = bytes - 1; i >= 0; --i) {
        frame += static_cast<char>(payload.size() >> (8 * i) & 0xff);
      }
    }
    frame += mask;
    for (std::size_t i = 0; i < payload.size(); ++i) {
      frame += static_cast<char>(payload[i] ^ mask[i % 4]);
    }
    return frame;
  }

  raw_frame read_frame() {
    const auto start = read_exactly(2);
    raw_frame frame;
    frame.fin = (start[0] & 0x80) != 0;
    frame.rsv1 = (start[0] & 0x40) != 0;
    frame.opcode = start[0] & 0x0f;
    std::size_t length = static_cast<unsigned char>(start[1]);
    if (length >= 126) {
      const auto wide = read_exactly(length == 126 ? 2 : 8);
      length = 0;
      for (const char c : wide) length = length << 8 | static_cast<unsigned char>(c);
    }
    frame.payload = read_exactly(length);
    return frame;
  }

 private:
  void option(int level, int name, int value) {
    ::setsockopt(socket_, level, name, &value, sizeof value);
  }

  bool receive() {
    char piece[16384];
    const auto got = ::recv(socket_, piece, sizeof piece, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      throw std::runtime_error("the server said nothing for ten seconds");
    }
    if (got <= 0) return false;
    received_.append(piece, static_cast<std::size_t>(got));
    return true;
  }

  int socket_ = -1;
  std::string received_;
};

/// Whether `condition` holds within ten seconds.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

}  // namespace octavo::testing
