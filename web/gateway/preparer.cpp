// The thread that prepares long prompts: see preparer.hpp.
#include "web/gateway/preparer.hpp"

#include <algorithm>

namespace octavo::gateway {

preparer::preparer(std::function<void(std::function<void()>)> post, preparer_limits limits)
    : post_(std::move(post)), limits_(limits), thread_([this] { loop(); }) {}

preparer::~preparer() {
  stop();
}

std::uint64_t preparer::add(std::size_t bytes, std::function<void()> work,
                            std::function<void()> done) {
  const std::uint64_t number = next_number_++;
  {
    const std::lock_guard lock{mutex_};
    if (is_stopped_) throw api::overloaded("the server is shutting down");
    if (jobs_.size() >= limits_.jobs_max ||
        (!jobs_.empty() && bytes_ + bytes > limits_.bytes_max)) {
      throw api::overloaded(
          "long prompts wait to be prepared already: " + std::to_string(jobs_.size()) + " of " +
          std::to_string(bytes_) + " bytes; " + std::to_string(limits_.jobs_max) + " of " +
          std::to_string(limits_.bytes_max) + " bytes are allowed");
    }
    jobs_.push_back({number, bytes, std::move(work)});
    bytes_ += bytes;
    done_.emplace(number, std::move(done));
  }
  changed_.notify_one();
  return number;
}

void preparer::forget(std::uint64_t number) {
  // Told to nobody, and dropped without the lock: it may hold a client's connection.
  const auto done = done_.extract(number);
  const std::lock_guard lock{mutex_};
  const auto found = std::ranges::find(jobs_, number, &job::number);
  if (found == jobs_.end() || (is_busy_ && found == jobs_.begin())) return;
  bytes_ -= found->bytes;
  jobs_.erase(found);
}

void preparer::finish(std::uint64_t number) {
  const auto done = done_.extract(number);
  if (done) done.mapped()();
}

void preparer::loop() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return is_stopped_ || !jobs_.empty(); });
    if (is_stopped_) return;
    is_busy_ = true;
    const auto work = std::exchange(jobs_.front().work, nullptr);
    lock.unlock();
    work();
    lock.lock();
    const job over = jobs_.front();
    jobs_.pop_front();
    bytes_ -= over.bytes;
    is_busy_ = false;
    post_([this, number = over.number] { finish(number); });
  }
}

void preparer::stop() {
  {
    const std::lock_guard lock{mutex_};
    is_stopped_ = true;
    while (jobs_.size() > (is_busy_ ? 1U : 0U)) jobs_.pop_back();
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace octavo::gateway
