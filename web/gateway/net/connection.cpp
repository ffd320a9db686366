// Reading, writing and ending one connection.
#include "web/gateway/net/connection.hpp"

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <exception>

namespace octavo::net {

connection::connection(connection_owner& owner, std::unique_ptr<transport> stream,
                       asio::any_io_executor executor, std::string remote_address)
    : owner_(owner),
      stream_(std::move(stream)),
      executor_(executor),
      remote_address_(std::move(remote_address)),
      deadline_(executor),
      write_deadline_(executor) {}

void connection::start(std::shared_ptr<protocol> first) {
  protocol_ = std::move(first);
  reading_ = true;
  asio::co_spawn(
      executor_,
      [self = shared_from_this()]() -> asio::awaitable<void> {
        const auto error = co_await self->stream_->handshake();
        if (error) self->close();
        co_await self->read(self);
      },
      asio::detached);
}

void connection::resume() {
  if (reading_ || closed_ || input_ended_) return;
  if (!finishing_ && !protocol_->wants_bytes()) return;
  reading_ = true;
  asio::co_spawn(executor_, read(shared_from_this()), asio::detached);
}

asio::awaitable<void> connection::read([[maybe_unused]] std::shared_ptr<connection> self) {
  asio::error_code error;
  while (!closed_ && (finishing_ || protocol_->wants_bytes())) {
    const auto data = co_await stream_->receive(error);
    if (closed_) break;
    if (error) {
      end_of_input(error);
      break;
    }
    received(data);
  }
  reading_ = false;
}

void connection::received(std::string_view data) {
  if (finishing_) return;
  const auto target = protocol_;  // may hand over to another while it is called
  try {
    target->receive(data);
  } catch (const std::exception& fault) {
    state().log(remote_address_ + ": " + fault.what());
    close();
  }
}

void connection::end_of_input(const asio::error_code& why) {
  input_ended_ = true;
  if (finishing_) {
    if (finished_) close();
    return;
  }
  const auto how = why == asio::error::eof ? protocol_->end_of_input() : protocol::ending::at_once;
  if (how == protocol::ending::at_once) return close();
  if (how == protocol::ending::flushed) close_gracefully();
}

void connection::send(std::string_view bytes) {
  if (closed_ || finishing_) return;
  waiting_.append(bytes);
  appended();
}

void connection::appended() {
  if (closed_) return;
  if (pending_bytes() > state().options.outbox_bytes_hard_max) {
    state().log(remote_address_ + ": too much waits to be sent; closing");
    return close();
  }
  if (writing_) {
    if (!congested_ && is_congested()) watch_writing();
    return;
  }
  if (flush_queued_) return;
  flush_queued_ = true;
  owner_.flush_later(shared_from_this());
}

void connection::flush() {
  flush_queued_ = false;
  if (closed_ || writing_) return;
  asio::error_code error;
  while (pending_bytes() > 0 && !error) {
    const std::array buffers{asio::buffer(std::string_view(sending_).substr(sent_)),
                             asio::buffer(std::string_view(waiting_))};
    took(stream_->try_send(buffers, error));
  }
  if (!error) return finish_if_flushed();
  if (error != asio::error::would_block) return close();
  writing_ = true;
  watch_writing();
  asio::co_spawn(executor_, write(shared_from_this()), asio::detached);
}

asio::awaitable<void> connection::write([[maybe_unused]] std::shared_ptr<connection> self) {
  asio::error_code error;
  while (pending_bytes() > 0 && !closed_) {
    // What is being sent must stay where it is, so newcomers queue up behind.
    if (sent_ == sending_.size()) {
      sending_ = std::move(waiting_);
      waiting_ = {};
      sent_ = 0;
    }
    const std::array buffers{asio::buffer(std::string_view(sending_).substr(sent_))};
    const auto count = co_await stream_->send(buffers, error);
    if (closed_) co_return;
    if (error) {
      close();
      co_return;
    }
    took(count);
    // While too much waits, progress alone buys no more time.
    if (!congested_ || !is_congested()) watch_writing();
  }
  writing_ = false;
  ++write_deadline_number_;
  write_deadline_.cancel();
  if (!closed_) finish_if_flushed();
}

/// The kernel took so many bytes of sending_ and then of waiting_.
void connection::took(std::size_t bytes) {
  if (bytes == 0) return;
  const auto rest = sending_.size() - sent_;
  if (bytes < rest) {
    sent_ += bytes;
  } else {
    sending_ = {};
    sent_ = 0;
    if (bytes - rest > 0) {
      sending_ = std::move(waiting_);
      waiting_ = {};
      sent_ = bytes - rest;
      if (sent_ == sending_.size()) {
        sending_ = {};
        sent_ = 0;
      }
    }
  }
  if (finishing_) return;
  const auto target = protocol_;
  target->drained();
  resume();
}

void connection::watch_writing() {
  congested_ = is_congested();
  const auto number = ++write_deadline_number_;
  write_deadline_.expires_after(state().options.write_timeout);
  write_deadline_.async_wait([self = shared_from_this(), number](const asio::error_code& error) {
    if (error || self->closed_ || number != self->write_deadline_number_) return;
    self->state().log(self->remote_address_ + ": reads too slowly; closing");
    self->close();
  });
}

void connection::set_deadline(std::chrono::milliseconds from_now) {
  if (closed_ || finishing_) return;
  const auto number = ++deadline_number_;
  deadline_.expires_after(from_now);
  deadline_.async_wait([self = shared_from_this(), number](const asio::error_code& error) {
    if (error || self->closed_ || number != self->deadline_number_) return;
    const auto target = self->protocol_;
    target->deadline_passed();
  });
}

void connection::clear_deadline() {
  ++deadline_number_;
  deadline_.cancel();
}

void connection::close_gracefully() {
  if (closed_ || finishing_) return;
  clear_deadline();
  finishing_ = true;
  later([this] {
    if (!writing_) finish_if_flushed();
    resume();
  });
}

void connection::finish_if_flushed() {
  if (!finishing_ || finished_ || closed_) return;
  if (pending_bytes() > 0) {
    if (!flush_queued_) flush();
    return;
  }
  finished_ = true;
  if (input_ended_) return close();
  close_in(state().options.close_timeout);
  asio::co_spawn(
      executor_,
      [self = shared_from_this()]() -> asio::awaitable<void> { co_await self->stream_->finish(); },
      asio::detached);
}

void connection::close_in(std::chrono::milliseconds from_now) {
  const auto number = ++deadline_number_;
  deadline_.expires_after(from_now);
  deadline_.async_wait([self = shared_from_this(), number](const asio::error_code& error) {
    if (!error && number == self->deadline_number_) self->close();
  });
}

void connection::shut_down(std::uint16_t code, std::string_view reason) {
  if (closed_) return;
  if (!finishing_) {
    const auto target = protocol_;
    target->shut_down(code, reason);
  }
  if (!closed_ && !finished_) close_in(state().options.close_timeout);
}

void connection::close() {
  if (closed_) return;
  closed_ = true;
  ++write_deadline_number_;
  clear_deadline();
  write_deadline_.cancel();
  stream_->close();
  asio::post(executor_, [self = shared_from_this()] {
    self->sending_ = {};
    self->waiting_ = {};
    self->sent_ = 0;
    const auto last = std::exchange(self->protocol_, nullptr);
    if (last) last->gone();
    self->owner_.forget(*self);
  });
}

void connection::later(std::function<void()> work) {
  asio::post(executor_, [self = shared_from_this(), work = std::move(work)] {
    if (!self->closed_) work();
  });
}

}  // namespace octavo::net
