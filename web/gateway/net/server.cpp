// The network thread, the listening socket and the set of connections.
#include "web/gateway/net/server.hpp"

#include <sys/resource.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <list>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "web/gateway/net/connection.hpp"
#include "web/gateway/net/http_protocol.hpp"
#include "web/gateway/net/server_state.hpp"
#include "web/gateway/net/tls.hpp"

namespace octavo::net {
namespace {

using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;

constexpr std::size_t scratch_bytes = 64 * 1024;
constexpr std::chrono::milliseconds accept_pause{100};

void raise_open_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

std::string text_of(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address();
  const auto text = address.to_string();
  return (address.is_v6() ? "[" + text + "]" : text) + ":" + std::to_string(endpoint.port());
}

/// The peer left before it was accepted: nothing is short, so no need to wait.
bool is_passing(const asio::error_code& error) {
  return error == asio::error::connection_aborted || error == asio::error::interrupted;
}

}  // namespace

class server::core final : public connection_owner {
 public:
  core(server_options options, application app) : scratch_(scratch_bytes), room_(io_) {
    validate(options);
    if (!app.on_request) throw input_error("an application needs on_request");
    state_.options = std::move(options);
    state_.app = std::move(app);
  }

  server_state& state() override { return state_; }

  void flush_later(std::shared_ptr<connection> which) override {
    dirty_.push_back(std::move(which));
    if (dirty_.size() == 1) asio::post(io_, [this] { flush_all(); });
  }

  void forget(connection& which) override {
    connections_.erase(&which);
    count_ = connections_.size();
    room_.cancel();
    stop_if_empty();
  }

  void listen();
  void run();
  void post(std::function<void()> work);
  void after(std::chrono::milliseconds delay, std::function<void()> work);
  void stop_accepting();
  void close_all(std::uint16_t code, const std::string& reason);
  void join();

  std::uint16_t port() const { return port_; }
  server_statistics statistics() const {
    return {accepted_, count_, state_.websockets, accept_errors_};
  }

 private:
  asio::awaitable<void> accept();
  asio::awaitable<void> pause(std::chrono::milliseconds time);
  void admit(tcp::socket socket, const tcp::endpoint& peer);
  void flush_all();
  void stop_if_empty();

  server_state state_;  // outlives what waits in io_
  asio::io_context io_{1};
  std::vector<char> scratch_;
  std::unique_ptr<tls_identity> identity_;
  std::optional<tcp::acceptor> acceptor_;
  asio::steady_timer room_;  ///< what accept() waits by
  std::unordered_map<connection*, std::shared_ptr<connection>> connections_;
  std::vector<std::shared_ptr<connection>> dirty_;
  std::list<asio::steady_timer> timers_;
  bool joining_ = false;
  std::uint16_t port_ = 0;
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> accept_errors_{0};
  std::thread thread_;
};

void server::core::listen() {
  const auto& options = state_.options;
  if (!options.certificate_file.empty()) {
    identity_ = std::make_unique<tls_identity>(options.certificate_file, options.key_file);
    state_.secure = true;
  }
  raise_open_file_limit();
  std::signal(SIGPIPE, SIG_IGN);
  const auto where = options.host + ":" + std::to_string(options.port);
  asio::error_code error;
  const auto found =
      tcp::resolver(io_).resolve(options.host, std::to_string(options.port),
                                 tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    throw input_error("host " + options.host +
                      " is not an address or name of this machine: " + error.message());
  }
  try {
    acceptor_.emplace(io_);
    acceptor_->open(found.begin()->endpoint().protocol());
    acceptor_->set_option(tcp::acceptor::reuse_address(true));
    acceptor_->bind(found.begin()->endpoint());
    acceptor_->listen(options.backlog);
    port_ = acceptor_->local_endpoint().port();
  } catch (const asio::system_error& fault) {
    acceptor_.reset();
    throw input_error("cannot listen on " + where + ": " + fault.code().message());
  }
  asio::co_spawn(io_, accept(), asio::detached);
  thread_ = std::thread([this] { run(); });
}

void server::core::run() {
  const auto work = asio::make_work_guard(io_);
  io_.run();
  ended_ = true;
  // What was cut short by the stop: closed sockets and cancelled timers report.
  io_.restart();
  io_.poll();
}

asio::awaitable<void> server::core::pause(std::chrono::milliseconds time) {
  asio::error_code ignored;
  room_.expires_after(time);
  co_await room_.async_wait(redirect_error(use_awaitable, ignored));
}

asio::awaitable<void> server::core::accept() {
  while (acceptor_ && acceptor_->is_open()) {
    if (connections_.size() >= state_.options.connections_max) {
      co_await pause(accept_pause);
      continue;
    }
    asio::error_code error;
    tcp::endpoint peer;
    auto socket = co_await acceptor_->async_accept(peer, redirect_error(use_awaitable, error));
    if (!error) {
      admit(std::move(socket), peer);
    } else if (acceptor_->is_open() && !is_passing(error)) {
      // Files or memory have run out: trying again at once would only spin.
      if (accept_errors_++ == 0) state_.log("accept: " + error.message());
      co_await pause(accept_pause);
    }
  }
}

void server::core::admit(tcp::socket socket, const tcp::endpoint& peer) {
  if (state_.draining) return;
  ++accepted_;
  asio::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const auto executor = socket.get_executor();
  auto stream = identity_ ? identity_->wrap(std::move(socket), scratch_)
                          : make_plain_transport(std::move(socket), scratch_);
  auto made = std::make_shared<connection>(*this, std::move(stream), executor, text_of(peer));
  connections_.emplace(made.get(), made);
  count_ = connections_.size();
  made->start(std::make_shared<http_protocol>(*made));
}

void server::core::flush_all() {
  const auto dirty = std::exchange(dirty_, {});
  for (const auto& which : dirty) which->flush();
}

void server::core::post(std::function<void()> work) {
  if (ended_) return;
  asio::post(io_, [this, work = std::move(work)] { state_.guarded("posted work", work); });
}

void server::core::after(std::chrono::milliseconds delay, std::function<void()> work) {
  if (ended_) return;
  asio::post(io_, [this, delay, work = std::move(work)] {
    const auto timer = timers_.emplace(timers_.end(), io_);
    timer->expires_after(delay);
    timer->async_wait([this, timer, work](const asio::error_code& error) {
      timers_.erase(timer);
      if (!error) state_.guarded("timed work", work);
    });
  });
}

void server::core::stop_accepting() {
  state_.draining = true;
  asio::error_code ignored;
  if (acceptor_) acceptor_->close(ignored);
  room_.cancel();
  for (const auto& [key, which] : std::unordered_map(connections_)) {
    if (which->is_open()) which->current()->drain();
  }
}

void server::core::close_all(std::uint16_t code, const std::string& reason) {
  for (const auto& [key, which] : std::unordered_map(connections_)) which->shut_down(code, reason);
}

void server::core::stop_if_empty() {
  if (joining_ && connections_.empty()) io_.stop();
}

void server::core::join() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] {
    joining_ = true;
    stop_if_empty();
  });
  thread_.join();
}

server::server(server_options options, application app)
    : core_(std::make_unique<core>(std::move(options), std::move(app))) {}

server::~server() {
  stop_accepting();
  close_all(1001);
  join();
}

void server::start() {
  core_->listen();
}

std::uint16_t server::port() const {
  return core_->port();
}

void server::post(std::function<void()> work) {
  core_->post(std::move(work));
}

void server::after(std::chrono::milliseconds delay, std::function<void()> work) {
  core_->after(delay, std::move(work));
}

void server::stop_accepting() {
  core_->post([core = core_.get()] { core->stop_accepting(); });
}

void server::close_all(std::uint16_t code, std::string reason) {
  core_->post(
      [core = core_.get(), code, reason = std::move(reason)] { core->close_all(code, reason); });
}

void server::join() {
  core_->join();
}

server_statistics server::statistics() const {
  return core_->statistics();
}

}  // namespace octavo::net
