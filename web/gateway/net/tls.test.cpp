// The server over TLS, with a client of its own.
#include "web/gateway/net/tls.hpp"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>
#include <filesystem>
#include <memory>

#include "tests/support/catch.hpp"
#include "tests/support/echo_application.hpp"
#include "tests/support/raw_client.hpp"

using namespace octavo::net;
using namespace octavo::testing;

namespace {

/// A self-signed certificate and its key in PEM files that vanish again.
struct identity_files {
  identity_files() {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair(EVP_EC_gen("P-256"),
                                                                   EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), pair.get());
    auto* name = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    X509_sign(made.get(), pair.get(), EVP_sha256());
    write(certificate, [&](FILE* file) { PEM_write_X509(file, made.get()); });
    write(key, [&](FILE* file) {
      PEM_write_PrivateKey(file, pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  ~identity_files() {
    std::filesystem::remove(certificate);
    std::filesystem::remove(key);
  }

  template <class F>
  static void write(const std::string& path, F&& fill) {
    const std::unique_ptr<FILE, decltype(&fclose)> file(fopen(path.c_str(), "w"), fclose);
    REQUIRE(file);
    fill(file.get());
  }

  const std::string stem =
      (std::filesystem::temp_directory_path() / ("octavo-tls-" + std::to_string(getpid())))
          .string();
  const std::string certificate = stem + "-certificate.pem";
  const std::string key = stem + "-key.pem";
};

/// Blocking TLS client that trusts the certificate it is given.
struct tls_client {
  tls_client(const std::string& certificate, std::uint16_t port) {
    context.load_verify_file(certificate);
    context.set_verify_mode(asio::ssl::verify_peer);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), port});
    stream.handshake(asio::ssl::stream_base::client);
  }

  void send(const std::string& bytes) { asio::write(stream, asio::buffer(bytes)); }

  /// Everything up to the server's end of TLS.
  std::string read_all() {
    std::string all;
    std::string piece(16'384, '\0');
    asio::error_code error;
    while (!error) {
      const auto got = stream.read_some(asio::buffer(piece), error);
      all.append(piece, 0, got);
    }
    CHECK(error == asio::error::eof);
    return all;
  }

  asio::io_context io;
  asio::ssl::context context{asio::ssl::context::tls_client};
  asio::ssl::stream<asio::ip::tcp::socket> stream{io, context};
};

}  // namespace

TEST_CASE("requests, streams and sockets work over TLS, and the end is said") {
  const identity_files files;
  server_options options;
  options.certificate_file = files.certificate;
  options.key_file = files.key;
  running_echo echo(options);
  tls_client client(files.certificate, echo.server.port());
  const std::string body(200'000, 'b');
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  client.send("GET /flood?3000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const auto all = client.read_all();
  CHECK(all.find(body) != std::string::npos);
  CHECK(all.size() > 3'200'000);
  CHECK(all.ends_with("0\r\n\r\n"));
  tls_client socket(files.certificate, echo.server.port());
  socket.send(
      "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
      raw_client::masked_frame(0x81, "over TLS") + raw_client::masked_frame(0x88, "\x03\xe8"));
  CHECK(socket.read_all().ends_with("\x81\x08over TLS\x88\x02\x03\xe8"));
}

TEST_CASE("a client that does not speak TLS is closed, and silence too") {
  const identity_files files;
  server_options options;
  options.certificate_file = files.certificate;
  options.key_file = files.key;
  options.header_timeout = std::chrono::milliseconds(100);
  running_echo echo(options);
  raw_client plain(echo.server.port());
  plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(plain.read_all().find("HTTP") == std::string::npos);
  raw_client silent(echo.server.port());
  CHECK(silent.read_all().empty());
  CHECK(echo.counts.requests == 0);
}

TEST_CASE("a TLS client that vanishes is noticed") {
  const identity_files files;
  server_options options;
  options.certificate_file = files.certificate;
  options.key_file = files.key;
  running_echo echo(options);
  {
    tls_client client(files.certificate, echo.server.port());
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    REQUIRE(eventually([&] { return echo.counts.requests == 1; }));
  }
  CHECK(eventually([&] { return echo.counts.lost == 1; }));
}

TEST_CASE("key and certificate must belong together") {
  const identity_files files;
  CHECK_THROWS_AS(tls_identity(files.certificate, files.certificate), std::runtime_error);
  CHECK_THROWS_AS(tls_identity(files.key, files.key), std::runtime_error);
  CHECK_NOTHROW(tls_identity(files.certificate, files.key));
}
