// HTTP/1.1 on one connection: requests in, one at a time; answers out, in order.
// Internal to this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "web/gateway/net/connection.hpp"
#include "web/gateway/net/exchange.hpp"
#include "web/gateway/net/request_parser.hpp"

namespace octavo::net {

class http_protocol final : public protocol, public std::enable_shared_from_this<http_protocol> {
 public:
  explicit http_protocol(connection& over);

  void receive(std::string_view data) override;
  ending end_of_input() override;
  void deadline_passed() override;
  bool wants_bytes() const override;
  void drained() override;
  void drain() override;
  void shut_down(std::uint16_t code, std::string_view reason) override;
  void gone() override;

  // For the exchange. Statuses and headers are valid already.
  void answer(const response& whole);
  void begin_stream(int status, const header_list& headers);
  bool write(std::string_view piece);
  void end();
  void abort() { connection_.close(); }
  /// The application dropped an unfinished answer, and wanted to hear of its status.
  void abandoned(const std::function<void(int status)>& on_begin);
  [[nodiscard]] std::size_t pending_bytes() const { return connection_.pending_bytes(); }
  void report_drained_later();

 private:
  void process();
  void process_later();
  void head_arrived();
  void dispatch();
  void call_application(request asked);
  void upgrade(const request& asked);
  void accept_websocket(const request& asked, websocket_acceptance accepted);
  void fail(const request_failure& failure);
  void report_refusal(int status);
  void answered();
  [[nodiscard]] header_list own_headers();
  [[nodiscard]] bool is_idle() const { return !answering_ && !parser_.begun() && buffer_.empty(); }

  connection& connection_;
  server_state& state_;
  request_parser parser_;
  received_share share_;  ///< of the body under way
  std::string buffer_;    ///< arrived, not parsed
  std::weak_ptr<exchange> exchange_;
  bool processing_ = false;
  bool answering_ = false;
  bool streaming_ = false;
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool in_body_ = false;
  bool chunked_ = false;
  int version_minor_ = 1;
};

}  // namespace octavo::net
