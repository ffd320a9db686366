// Many clients in one thread: opens them a few at a time and runs their event loop.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include "bench/support/stream_client.hpp"

namespace octavo::bench {

class crowd : public stream_listener {
 public:
  explicit crowd(std::uint16_t port) : port_(port) {}

  /// Begins to open `count` clients, number i of the kind that `kind_of` says.
  void open(std::size_t count, const std::function<wire_kind(std::size_t)>& kind_of) {
    for (std::size_t i = 0; i < count; ++i) {
      clients_.push_back(std::make_shared<stream_client>(io_, scratch_, kind_of(i), *this, i));
    }
    for (std::size_t i = 0; i < opening_max; ++i) connect_next();
  }

  /// Runs until `done`; false where that takes longer than `limit`.
  bool run_until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
    const moment deadline = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.run_for(std::chrono::milliseconds{10});
    }
    return true;
  }
  void run_for(std::chrono::milliseconds time) { io_.run_for(time); }

  void opened(stream_client& by) override {
    ++opened_;
    last_opened_at_ = std::chrono::steady_clock::now();
    connect_next();
    begin(by);
  }
  void ended(stream_client& by, const std::string& why) override {
    problem("client " + std::to_string(by.number()) + ": " + why);
    connect_next();
  }

  [[nodiscard]] std::size_t opened_count() const { return opened_; }
  [[nodiscard]] moment last_opened_at() const { return last_opened_at_; }
  [[nodiscard]] const std::vector<std::shared_ptr<stream_client>>& clients() const {
    return clients_;
  }
  /// What went wrong, the first few; and how often.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  [[nodiscard]] std::size_t problem_count() const { return problem_count_; }

 protected:
  /// A client can be asked.
  virtual void begin(stream_client&) {}
  void problem(std::string what) {
    if (problem_count_++ < problems_shown_max) problems_.push_back(std::move(what));
  }

 private:
  static constexpr std::size_t opening_max = 128;  ///< fewer than any server's backlog
  static constexpr std::size_t problems_shown_max = 5;

  void connect_next() {
    if (next_ < clients_.size()) clients_[next_++]->connect(port_);
  }

  std::uint16_t port_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::vector<char> scratch_ = std::vector<char>(std::size_t{64} * 1024);
  std::vector<std::shared_ptr<stream_client>> clients_;
  std::size_t next_ = 0;
  std::size_t opened_ = 0;
  moment last_opened_at_;
  std::vector<std::string> problems_;
  std::size_t problem_count_ = 0;
};

}  // namespace octavo::bench
