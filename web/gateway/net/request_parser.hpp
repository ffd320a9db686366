// Bytes to requests. http_parser does the grammar of heads; what it lets pass and
// a server behind proxies must not (bare line feeds, folded headers, two lengths,
// no host) is refused here, so that nobody can smuggle a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "web/gateway/net/chunked.hpp"
#include "web/gateway/net/http.hpp"
#include "web/gateway/net/options.hpp"

namespace octavo::net {

/// Why a request cannot be served; the connection ends with it.
struct request_failure {
  int status = 400;
  std::string message;
};

/// Parses one request at a time. `options` must outlive it.
class request_parser {
 public:
  enum class state {
    head,      ///< the request line and headers are not all there
    body,      ///< head() is known, the body is not all there
    complete,  ///< the request is whole: take() it
    failed     ///< see failure()
  };

  explicit request_parser(const server_options& options);
  ~request_parser();
  request_parser(const request_parser&) = delete;
  request_parser& operator=(const request_parser&) = delete;

  /// Consumes bytes up to the end of the head, or of the request, or of `data`,
  /// and returns how many.
  std::size_t feed(std::string_view data);

  [[nodiscard]] state now() const { return state_; }
  /// Whether any byte of a request has arrived.
  [[nodiscard]] bool begun() const { return state_ != state::head || !head_.empty(); }
  [[nodiscard]] const request_failure& failure() const { return failure_; }
  [[nodiscard]] const request& head() const { return request_; }
  /// Whether the client waits for 100 Continue before it sends the body.
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }
  /// Whether another request may follow on the connection.
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }

  /// Hands the complete request over and starts on the next.
  [[nodiscard]] request take();

 private:
  struct grammar;

  std::size_t feed_head(std::string_view data);
  std::size_t feed_body(std::string_view data);
  void parse_head();
  void fail(int status, std::string message);
  void fail_by_grammar();
  void fail_by_size();
  void check_head();
  void check_target();
  void check_lengths();

  const server_options& options_;
  std::unique_ptr<grammar> grammar_;
  state state_ = state::head;
  std::string head_;
  std::optional<chunk_decoder> chunks_;  ///< where the body is chunked
  std::uint64_t body_left_ = 0;          ///< where it is not
  request request_;
  request_failure failure_;
  bool expects_continue_ = false;
  bool keep_alive_ = false;
};

}  // namespace octavo::net
