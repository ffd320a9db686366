// One client's connection below its protocol: the loop that reads, the outbox,
// two deadlines, and an orderly end. Internal to this folder.
#pragma once

#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "web/gateway/net/server_state.hpp"
#include "web/gateway/net/transport.hpp"

namespace octavo::net {

class connection;

/// What a connection's bytes mean. Called from the event loop only.
class protocol {
 public:
  virtual ~protocol() = default;
  /// Bytes arrived; not kept by the caller.
  virtual void receive(std::string_view data) = 0;
  /// What becomes of a connection whose client sends no more.
  enum class ending {
    at_once,  ///< it closes
    flushed,  ///< it closes when the outbox is empty
    answered  ///< it closes by the protocol, when the answer under way is complete
  };
  [[nodiscard]] virtual ending end_of_input() = 0;
  /// set_deadline()'s time has passed.
  virtual void deadline_passed() = 0;
  /// Whether more bytes are welcome. Where not, reading stops until resume().
  virtual bool wants_bytes() const = 0;
  /// Fewer bytes wait in the outbox than before.
  virtual void drained() = 0;
  /// No more requests are to be begun here.
  virtual void drain() = 0;
  /// Ends what is under way, telling the client `code` where its protocol can.
  virtual void shut_down(std::uint16_t code, std::string_view reason) = 0;
  /// The connection is closed. Called once, last of all.
  virtual void gone() = 0;
};

/// What connections need of the server.
class connection_owner {
 public:
  virtual ~connection_owner() = default;
  virtual server_state& state() = 0;
  /// Has flush() called at the end of this turn of the event loop.
  virtual void flush_later(std::shared_ptr<connection> which) = 0;
  virtual void forget(connection& which) = 0;
};

class connection : public std::enable_shared_from_this<connection> {
 public:
  connection(connection_owner& owner, std::unique_ptr<transport> stream,
             asio::any_io_executor executor, std::string remote_address);

  /// Begins to read for `first`.
  void start(std::shared_ptr<protocol> first);
  /// Hands the connection to another protocol, which gets what is read from now.
  void become(std::shared_ptr<protocol> next) { protocol_ = std::move(next); }
  /// The current protocol, where the connection is not closed.
  [[nodiscard]] const std::shared_ptr<protocol>& current() const { return protocol_; }

  /// Queues bytes. They leave at the end of this turn of the event loop.
  void send(std::string_view bytes);
  /// The outbox itself, to append to; call appended() after.
  [[nodiscard]] std::string& outbox() { return waiting_; }
  void appended();
  void flush();
  [[nodiscard]] std::size_t pending_bytes() const {
    return sending_.size() - sent_ + waiting_.size();
  }
  /// Whether more is queued than options allow for long.
  [[nodiscard]] bool is_congested() const {
    return pending_bytes() > owner_.state().options.outbox_bytes_max;
  }

  void set_deadline(std::chrono::milliseconds from_now);
  void clear_deadline();
  /// Reads on where the protocol wants bytes again.
  void resume();

  /// Sends what is queued, says that no more will come, and gives the client
  /// close_timeout to close in turn. What it still sends is dropped.
  void close_gracefully();
  /// At once. gone() follows from the event loop.
  void close();
  /// As protocol::shut_down(); the connection is closed after twice close_timeout
  /// at the latest.
  void shut_down(std::uint16_t code, std::string_view reason);
  [[nodiscard]] bool is_open() const { return !closed_ && !finishing_; }

  /// Runs `work` from the event loop, soon, while the connection lives.
  void later(std::function<void()> work);

  [[nodiscard]] const std::string& remote_address() const { return remote_address_; }
  [[nodiscard]] server_state& state() { return owner_.state(); }
  [[nodiscard]] const asio::any_io_executor& executor() const { return executor_; }

 private:
  asio::awaitable<void> read(std::shared_ptr<connection> self);
  asio::awaitable<void> write(std::shared_ptr<connection> self);
  void received(std::string_view data);
  void end_of_input(const asio::error_code& why);
  void took(std::size_t bytes);
  void watch_writing();
  void finish_if_flushed();
  void close_in(std::chrono::milliseconds from_now);

  connection_owner& owner_;
  std::unique_ptr<transport> stream_;
  asio::any_io_executor executor_;
  std::shared_ptr<protocol> protocol_;
  std::string remote_address_;

  std::string sending_;  ///< the kernel has its first sent_ bytes
  std::size_t sent_ = 0;
  std::string waiting_;  ///< behind sending_

  asio::steady_timer deadline_;
  asio::steady_timer write_deadline_;
  std::uint32_t deadline_number_ = 0;  ///< tells a timer that fired from one that was replaced
  std::uint32_t write_deadline_number_ = 0;

  bool reading_ = false;
  bool writing_ = false;  ///< write() waits for room
  bool congested_ = false;
  bool flush_queued_ = false;
  bool finishing_ = false;  ///< close_gracefully() was called
  bool finished_ = false;   ///< and the client was told
  bool input_ended_ = false;
  bool closed_ = false;
};

}  // namespace octavo::net
