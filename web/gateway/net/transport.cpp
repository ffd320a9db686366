// The plain stream.
#include "web/gateway/net/transport.hpp"

#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

namespace octavo::net {
namespace {

using asio::redirect_error;
using asio::use_awaitable;

/// Waits for readiness and only then reads, so an idle connection has no buffer.
class plain_transport final : public transport {
 public:
  plain_transport(asio::ip::tcp::socket socket, std::span<char> scratch)
      : socket_(std::move(socket)), scratch_(scratch) {
    asio::error_code ignored;
    socket_.non_blocking(true, ignored);
  }

  asio::awaitable<asio::error_code> handshake() override { co_return asio::error_code{}; }

  asio::awaitable<std::string_view> receive(asio::error_code& error) override {
    for (;;) {
      co_await socket_.async_wait(socket_.wait_read, redirect_error(use_awaitable, error));
      if (error) co_return std::string_view{};
      const auto got = socket_.read_some(asio::buffer(scratch_.data(), scratch_.size()), error);
      if (error == asio::error::would_block) continue;
      co_return std::string_view(scratch_.data(), got);
    }
  }

  std::size_t try_send(std::span<const asio::const_buffer> buffers,
                       asio::error_code& error) override {
    return socket_.write_some(buffers, error);
  }

  asio::awaitable<std::size_t> send(std::span<const asio::const_buffer> buffers,
                                    asio::error_code& error) override {
    co_return co_await socket_.async_write_some(buffers, redirect_error(use_awaitable, error));
  }

  asio::awaitable<void> finish() override {
    asio::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    co_return;
  }

  void close() override {
    asio::error_code ignored;
    socket_.close(ignored);
  }

 private:
  asio::ip::tcp::socket socket_;
  std::span<char> scratch_;
};

}  // namespace

std::unique_ptr<transport> make_plain_transport(asio::ip::tcp::socket socket,
                                                std::span<char> scratch) {
  return std::make_unique<plain_transport>(std::move(socket), scratch);
}

}  // namespace octavo::net
