// A byte stream to one client, with or without TLS. Internal to this folder.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace octavo::net {

/// All functions report by error_code; one receive() and one send() may wait at
/// the same time.
class transport {
 public:
  virtual ~transport() = default;

  /// What must happen before bytes flow.
  virtual asio::awaitable<asio::error_code> handshake() = 0;
  /// Waits for bytes. The result is valid until the caller next waits for
  /// anything. The end of the stream is asio::error::eof.
  virtual asio::awaitable<std::string_view> receive(asio::error_code& error) = 0;
  /// Takes what the kernel has room for, without waiting; would_block where that
  /// is nothing, or where this kind of stream cannot know.
  virtual std::size_t try_send(std::span<const asio::const_buffer> buffers,
                               asio::error_code& error) = 0;
  /// Waits until some were taken.
  virtual asio::awaitable<std::size_t> send(std::span<const asio::const_buffer> buffers,
                                            asio::error_code& error) = 0;
  /// Tells the client that nothing more will come.
  virtual asio::awaitable<void> finish() = 0;
  /// Ends everything, also what waits.
  virtual void close() = 0;
};

/// `scratch` is where bytes arrive; all plain connections of a thread share it.
[[nodiscard]] std::unique_ptr<transport> make_plain_transport(asio::ip::tcp::socket socket,
                                                              std::span<char> scratch);

}  // namespace octavo::net
