// Prepares long prompts on a thread of its own, so that the network thread goes on.
//
//   preparer worker{[&](auto work) { server.post(std::move(work)); }};
//   const auto job = worker.run(bytes, [=] { return tokens_of(text); },       // on its thread
//                               [=](outcome<tokens> got) { … });              // on the network's
//   worker.forget(job);                                                       // nothing is told
//
// What waits is bounded. Everything but the work itself lives on the network thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>

#include "web/gateway/api/api_error.hpp"

namespace octavo::gateway {

/// Prompts of fewer bytes are prepared on the network thread: a hop would cost more.
inline constexpr std::size_t long_prompt_bytes = 16 * 1024;

/// What a work gave, or why it could not.
template <class T>
using outcome = std::variant<T, api::api_error>;

/// What waits or is being worked on at once. One job may have any size.
struct preparer_limits {
  std::size_t jobs_max = 256;
  std::size_t bytes_max = std::size_t{64} << 20;
};

class preparer {
 public:
  /// `post` runs what it is given on the network thread; it is called until stop() returns.
  explicit preparer(std::function<void(std::function<void()>)> post, preparer_limits limits = {});
  /// As stop(). What `post` took must not run any more.
  ~preparer();
  preparer(const preparer&) = delete;
  preparer& operator=(const preparer&) = delete;

  /// Calls work() on the other thread and done(its outcome) by `post`; one at a time, in
  /// order. What work() throws is the outcome. Returns the job's number. Throws api_error
  /// (503) where too much waits, or after stop().
  template <class Work, class Done>
  std::uint64_t run(std::size_t bytes, Work work, Done done) {
    using result = outcome<std::invoke_result_t<Work&>>;
    const auto got = std::make_shared<result>(api::api_error{});
    return add(
        bytes, [got, work = std::move(work)]() mutable { *got = attempt<result>(work); },
        [got, done = std::move(done)]() mutable { done(std::move(*got)); });
  }
  /// A job's work is left out unless it has begun, and nothing is told. Does nothing for
  /// one that is done.
  void forget(std::uint64_t number);
  /// Jobs that are neither done nor forgotten.
  [[nodiscard]] std::size_t live() const { return done_.size(); }

  /// Drops what waits and ends the thread, when the work under way is done. Any thread but
  /// the two; may be called again.
  void stop();

 private:
  struct job {
    std::uint64_t number = 0;
    std::size_t bytes = 0;
    std::function<void()> work;
  };

  template <class Result, class Work>
  static Result attempt(Work& work) {
    try {
      return work();
    } catch (const api::api_error& why) {
      return why;
    } catch (const std::exception& fault) {
      return api::server_error(std::string{"the prompt could not be prepared: "} + fault.what());
    }
  }
  std::uint64_t add(std::size_t bytes, std::function<void()> work, std::function<void()> done);
  void finish(std::uint64_t number);
  void loop();

  std::function<void(std::function<void()>)> post_;
  preparer_limits limits_;
  std::uint64_t next_number_ = 1;
  std::unordered_map<std::uint64_t, std::function<void()>> done_;

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<job> jobs_;  ///< the first is being worked on where is_busy_
  bool is_busy_ = false;
  std::size_t bytes_ = 0;  ///< of jobs_
  bool is_stopped_ = false;
  std::thread thread_;
};

}  // namespace octavo::gateway
