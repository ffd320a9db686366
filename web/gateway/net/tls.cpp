// The one file that knows OpenSSL.
#include "web/gateway/net/tls.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <asio/redirect_error.hpp>
#include <asio/ssl/context.hpp>
#include <asio/use_awaitable.hpp>
#include <memory>
#include <new>

#include "core/error.hpp"

namespace octavo::net {
namespace {

using asio::redirect_error;
using asio::use_awaitable;

struct free_stream {
  void operator()(SSL* stream) const { SSL_free(stream); }
};

/// OpenSSL works on the socket itself, which never waits; where it cannot go on, the socket's
/// readiness is waited for. So an idle connection has no buffers: OpenSSL gives its own back
/// (SSL_MODE_RELEASE_BUFFERS), and bytes arrive in memory that all connections share.
class tls_transport final : public transport {
 public:
  tls_transport(asio::ip::tcp::socket socket, SSL_CTX* context, std::span<char> scratch)
      : socket_(std::move(socket)), scratch_(scratch), stream_(SSL_new(context)) {
    asio::error_code ignored;
    socket_.non_blocking(true, ignored);
    if (!stream_ || SSL_set_fd(stream_.get(), socket_.native_handle()) != 1) throw std::bad_alloc();
    SSL_set_accept_state(stream_.get());
  }

  asio::awaitable<asio::error_code> handshake() override {
    asio::error_code error;
    for (;;) {
      const int done = call([&] { return SSL_do_handshake(stream_.get()); }, error);
      if (done == 1 || error != asio::error::would_block) co_return error;
      co_await wait(error);
      if (error) co_return error;
    }
  }

  asio::awaitable<std::string_view> receive(asio::error_code& error) override {
    for (;;) {
      // The rest of a record may lie here already; else others get their turn.
      if (SSL_pending(stream_.get()) == 0) {
        co_await socket_.async_wait(socket_.wait_read, redirect_error(use_awaitable, error));
        if (error) co_return std::string_view{};
      }
      std::size_t got = 0;
      call([&] { return SSL_read_ex(stream_.get(), scratch_.data(), scratch_.size(), &got); },
           error);
      if (error != asio::error::would_block) co_return std::string_view(scratch_.data(), got);
      if (waits_for_ == socket_.wait_write) co_await wait(error);
    }
  }

  std::size_t try_send(std::span<const asio::const_buffer> buffers,
                       asio::error_code& error) override {
    // Of one buffer: OpenSSL wants again at least what it could not send at once, and
    // whatever joins the others meanwhile, this one does not get shorter.
    const auto first = std::ranges::find_if(buffers, [](const auto& b) { return b.size() > 0; });
    std::size_t sent = 0;
    if (first == buffers.end()) return sent;
    call([&] { return SSL_write_ex(stream_.get(), first->data(), first->size(), &sent); }, error);
    return sent;
  }

  asio::awaitable<std::size_t> send(std::span<const asio::const_buffer> buffers,
                                    asio::error_code& error) override {
    for (;;) {
      const std::size_t sent = try_send(buffers, error);
      if (error != asio::error::would_block) co_return sent;
      co_await wait(error);
      if (error) co_return 0;
    }
  }

  asio::awaitable<void> finish() override {
    asio::error_code error;
    do {
      call([&] { return SSL_shutdown(stream_.get()) < 0 ? -1 : 1; }, error);
      if (error != asio::error::would_block) break;
      co_await wait(error);
    } while (!error);
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  }

  void close() override {
    asio::error_code ignored;
    socket_.close(ignored);
  }

 private:
  /// What `work` returns: positive where it succeeded. Else `error` says why, would_block with
  /// waits_for_ where the socket was not ready.
  template <class Work>
  int call(const Work& work, asio::error_code& error) {
    error = {};
    if (!socket_.is_open()) {
      error = asio::error::bad_descriptor;
      return -1;
    }
    ERR_clear_error();
    const int result = work();
    if (result > 0) return result;
    switch (SSL_get_error(stream_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        waits_for_ = socket_.wait_read;
        error = asio::error::would_block;
        break;
      case SSL_ERROR_WANT_WRITE:
        waits_for_ = socket_.wait_write;
        error = asio::error::would_block;
        break;
      case SSL_ERROR_ZERO_RETURN:
        error = asio::error::eof;
        break;
      default:
        error = asio::error::connection_reset;
        if (is_truncation()) error = asio::error::eof;
    }
    return result;
  }

  /// The client left without the end that TLS has for it.
  static bool is_truncation() {
    const auto why = ERR_peek_error();
    return ERR_GET_LIB(why) == ERR_LIB_SSL &&
           ERR_GET_REASON(why) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  }

  asio::awaitable<void> wait(asio::error_code& error) {
    co_await socket_.async_wait(waits_for_, redirect_error(use_awaitable, error));
  }

  asio::ip::tcp::socket socket_;
  std::span<char> scratch_;
  std::unique_ptr<SSL, free_stream> stream_;
  asio::ip::tcp::socket::wait_type waits_for_ = asio::ip::tcp::socket::wait_read;
};

}  // namespace

struct tls_identity::context : asio::ssl::context {
  context() : asio::ssl::context(asio::ssl::context::tls_server) {}
};

tls_identity::tls_identity(const std::string& certificate_file, const std::string& key_file)
    : context_(std::make_unique<context>()) {
  using options = asio::ssl::context;
  context_->set_options(options::default_workarounds | options::no_sslv2 | options::no_sslv3 |
                        options::no_tlsv1 | options::no_tlsv1_1 | options::no_compression |
                        SSL_OP_NO_RENEGOTIATION);
  SSL_CTX* const native = context_->native_handle();
  // What is sent again after a wait may lie elsewhere, and be longer.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                               SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Tickets let clients come back quickly, and are kept by them; nothing is kept here.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
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

std::unique_ptr<transport> tls_identity::wrap(asio::ip::tcp::socket socket,
                                              std::span<char> scratch) {
  return std::make_unique<tls_transport>(std::move(socket), context_->native_handle(), scratch);
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
