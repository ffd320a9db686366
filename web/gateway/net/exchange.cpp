// Checks what an application answers before the protocol writes it.
#include "web/gateway/net/exchange.hpp"

#include <asio/post.hpp>

#include "core/error.hpp"
#include "web/gateway/net/handles.hpp"
#include "web/gateway/net/http_protocol.hpp"

namespace octavo::net {
namespace {

void validate_status(int status) {
  if (status >= 200 && status <= 599) return;
  throw input_error("response status is " + std::to_string(status) + "; allowed are 200 to 599");
}

}  // namespace

exchange::~exchange() {
  if (!open()) return;
  if (auto http = http_.lock()) {
    asio::post(executor_, [http = std::move(http), begins = std::move(on_begin_)] {
      http->abandoned(begins);
    });
  }
}

std::shared_ptr<http_protocol> exchange::live() const {
  return open() ? http_.lock() : nullptr;
}

void exchange::begin(int status) {
  if (const auto callback = std::exchange(on_begin_, nullptr)) callback(status);
}

void exchange::finish() {
  progress_ = complete;
  on_close_ = nullptr;
  on_drain_ = nullptr;
}

void exchange::send(const response& answer) {
  validate_status(answer.status);
  validate_response_headers(answer.headers);
  const auto http = live();
  if (!http || begun()) return;
  finish();
  http->answer(answer);
  begin(answer.status);
}

void exchange::begin_stream(int status, const header_list& headers) {
  validate_status(status);
  validate_response_headers(headers);
  const auto http = live();
  if (!http || begun()) return;
  progress_ = streaming;
  http->begin_stream(status, headers);
  begin(status);
}

bool exchange::write(std::string_view piece) {
  const auto http = live();
  return http && begun() && http->write(piece);
}

void exchange::end() {
  const auto http = live();
  if (!http || !begun()) return;
  finish();
  http->end();
}

void exchange::abort() {
  if (const auto http = live()) http->abort();
}

void exchange::on_close(std::function<void()> callback) {
  if (!callback || progress_ == complete) return;
  if (progress_ != cut) {
    on_close_ = std::move(callback);
    return;
  }
  asio::post(executor_, std::move(callback));
}

void exchange::on_drain(std::size_t bytes, std::function<void()> callback) {
  const auto http = live();
  if (!http) return;
  drain_bytes_ = bytes;
  on_drain_ = std::move(callback);
  if (http->pending_bytes() <= bytes) http->report_drained_later();
}

std::size_t exchange::pending_bytes() const {
  const auto http = live();
  return http ? http->pending_bytes() : 0;
}

void exchange::lost() {
  if (!open()) return;
  progress_ = cut;
  on_drain_ = nullptr;
  if (const auto callback = std::exchange(on_close_, nullptr)) callback();
}

void exchange::drained(std::size_t pending) {
  if (!on_drain_ || pending > drain_bytes_) return;
  const auto callback = std::exchange(on_drain_, nullptr);
  callback();
}

void responder::send(response answer) {
  if (exchange_) exchange_->send(answer);
}

void responder::begin_stream(int status, header_list headers) {
  if (exchange_) exchange_->begin_stream(status, headers);
}

bool responder::write(std::string_view piece) {
  return exchange_ && exchange_->write(piece);
}

void responder::end() {
  if (exchange_) exchange_->end();
}

void responder::abort() {
  if (exchange_) exchange_->abort();
}

void responder::on_begin(std::function<void(int status)> callback) {
  if (exchange_) exchange_->on_begin(std::move(callback));
}

void responder::on_close(std::function<void()> callback) {
  if (exchange_) exchange_->on_close(std::move(callback));
}

void responder::on_drain(std::size_t bytes, std::function<void()> callback) {
  if (exchange_) exchange_->on_drain(bytes, std::move(callback));
}

std::size_t responder::pending_bytes() const {
  return exchange_ ? exchange_->pending_bytes() : 0;
}

bool responder::open() const {
  return exchange_ && exchange_->open();
}

}  // namespace octavo::net
