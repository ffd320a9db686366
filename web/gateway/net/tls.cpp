// The one file that knows OpenSSL.
#include "web/gateway/net/tls.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <asio/redirect_error.hpp>
#include <asio/ssl.hpp>
#include <asio/use_awaitable.hpp>
#include <vector>

#include "core/error.hpp"

namespace octavo::net {
namespace {

using asio::redirect_error;
using asio::use_awaitable;

constexpr std::size_t record_bytes = 16 * 1024;

class tls_transport final : public transport {
 public:
  tls_transport(asio::ip::tcp::socket socket, asio::ssl::context& context)
      : stream_(std::move(socket), context) {}

  asio::awaitable<asio::error_code> handshake() override {
    asio::error_code error;
    co_await stream_.async_handshake(asio::ssl::stream_base::server,
                                     redirect_error(use_awaitable, error));
    co_return error;
  }

  asio::awaitable<std::string_view> receive(asio::error_code& error) override {
    const auto got = co_await stream_.async_read_some(asio::buffer(received_),
                                                      redirect_error(use_awaitable, error));
    if (error == asio::ssl::error::stream_truncated) error = asio::error::eof;
    co_return std::string_view(received_.data(), got);
  }

  std::size_t try_send(std::span<const asio::const_buffer>, asio::error_code& error) override {
    error = asio::error::would_block;
    return 0;
  }

  asio::awaitable<std::size_t> send(std::span<const asio::const_buffer> buffers,
                                    asio::error_code& error) override {
    record_.resize(std::min(asio::buffer_size(buffers), record_bytes));
    asio::buffer_copy(asio::buffer(record_), buffers);
    const auto sent = co_await stream_.async_write_some(asio::buffer(record_),
                                                        redirect_error(use_awaitable, error));
    if (sent == record_.size()) record_ = {};
    co_return sent;
  }

  asio::awaitable<void> finish() override {
    asio::error_code ignored;
    co_await stream_.async_shutdown(redirect_error(use_awaitable, ignored));
    stream_.next_layer().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }

  void close() override {
    asio::error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
  std::array<char, 4096> received_;
  std::string record_;
};

}  // namespace

struct tls_identity::context : asio::ssl::context {
  context() : asio::ssl::context(asio::ssl::context::tls_server) {}
};

tls_identity::tls_identity(const std::string& certificate_file, const std::string& key_file)
    : context_(std::make_unique<context>()) {
  using options = asio::ssl::context;
  context_->set_options(options::default_workarounds | options::no_sslv2 | options::no_sslv3 |
                        options::no_tlsv1 | options::no_tlsv1_1 | options::no_compression);
  SSL_CTX_set_mode(context_->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  asio::error_code error;
  context_->use_certificate_chain_file(certificate_file, error);
  if (error) {
    throw input_error("certificate file " + certificate_file + ": " + error.message() +
                      "; a PEM chain is wanted");
  }
  context_->use_private_key_file(key_file, asio::ssl::context::pem, error);
  if (error) {
    throw input_error("key file " + key_file + ": " + error.message() +
                      "; the PEM key of the certificate is wanted");
  }
}

tls_identity::~tls_identity() = default;

std::unique_ptr<transport> tls_identity::wrap(asio::ip::tcp::socket socket) {
  return std::make_unique<tls_transport>(std::move(socket), *context_);
}

std::string websocket_accept(std::string_view key) {
  std::string text(key);
  text += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned length = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha1(), nullptr);
  std::array<unsigned char, 64> encoded;
  const int size = EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(length));
  return {reinterpret_cast<const char*>(encoded.data()), static_cast<std::size_t>(size)};
}

bool is_websocket_key(std::string_view key) {
  constexpr std::size_t key_characters = 24;
  std::array<unsigned char, 18> decoded;
  return key.size() == key_characters && key.ends_with("==") && key[21] != '=' &&
         EVP_DecodeBlock(decoded.data(), reinterpret_cast<const unsigned char*>(key.data()),
                         static_cast<int>(key.size())) == static_cast<int>(decoded.size());
}

}  // namespace octavo::net
