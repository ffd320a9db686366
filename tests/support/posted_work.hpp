// What other threads post, to be run by the test's thread one at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace octavo::testing {

class posted_work {
 public:
  /// A function to post with, from any thread.
  [[nodiscard]] std::function<void(std::function<void()>)> taker() {
    return [this](std::function<void()> work) {
      const std::lock_guard lock{mutex_};
      works_.push_back(std::move(work));
      changed_.notify_one();
    };
  }
  /// Waits until something is posted.
  void wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return !works_.empty(); });
  }
  /// Waits for the next and runs it.
  void run_next() {
    wait();
    std::function<void()> work;
    {
      const std::lock_guard lock{mutex_};
      work = std::move(works_.front());
      works_.pop_front();
    }
    work();
  }
  [[nodiscard]] std::size_t size() {
    const std::lock_guard lock{mutex_};
    return works_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
};

}  // namespace octavo::testing
