// The state behind a responder: one request and the answer to it. Internal to
// this folder.
#pragma once

#include <asio/any_io_executor.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "web/gateway/net/http.hpp"

namespace octavo::net {

class http_protocol;

class exchange {
 public:
  exchange(std::weak_ptr<http_protocol> http, asio::any_io_executor executor)
      : http_(std::move(http)), executor_(std::move(executor)) {}
  /// May run on any thread, so an unfinished answer is ended by posting.
  ~exchange();
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  void send(const response& answer);
  void begin_stream(int status, const header_list& headers);
  bool write(std::string_view piece);
  void end();
  void abort();
  void on_begin(std::function<void(int status)> callback) { on_begin_ = std::move(callback); }
  void on_close(std::function<void()> callback);
  void on_drain(std::size_t bytes, std::function<void()> callback);
  [[nodiscard]] std::size_t pending_bytes() const;
  [[nodiscard]] bool open() const { return progress_ < complete; }
  [[nodiscard]] bool begun() const { return progress_ >= streaming; }
  /// Whether the application asked to hear when the client is gone.
  [[nodiscard]] bool watches_client() const { return static_cast<bool>(on_close_); }

  /// The connection is gone; tells the application.
  void lost();
  /// The outbox shrank to `pending` bytes.
  void drained(std::size_t pending);

 private:
  enum progress { waiting, streaming, complete, cut };

  /// The protocol, where the answer is still wanted.
  [[nodiscard]] std::shared_ptr<http_protocol> live() const;
  void begin(int status);
  void finish();

  std::weak_ptr<http_protocol> http_;
  asio::any_io_executor executor_;
  progress progress_ = waiting;
  std::function<void(int status)> on_begin_;
  std::function<void()> on_close_;
  std::function<void()> on_drain_;
  std::size_t drain_bytes_ = 0;
};

}  // namespace octavo::net
