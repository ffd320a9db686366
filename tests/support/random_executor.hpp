// An executor for tests of the real world: each step takes a random time, texts
// end at random, and now and then a step fails. What happens to a step depends
// on the seed and the step's number alone; when it happens does not.
#pragma once

#include <chrono>
#include <deque>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/executor.hpp"
#include "traces/random.hpp"

namespace octavo::test {

struct random_executor_options {
  std::uint64_t seed = 0;
  std::int64_t duration_us_max = 300;
  /// Of 1000 sampled tokens, so many end their text.
  std::uint64_t ends_per_1000 = 60;
  /// Of 1000 steps, so many fail.
  std::uint64_t failures_per_1000 = 5;
  token_count block_size{4};
  /// Throws in the first step from this number on; 0: never.
  std::uint64_t dies_in_step = 0;
};

class random_executor final : public executor {
 public:
  explicit random_executor(const random_executor_options& options)
      : options_(options),
        durations_(options.seed, 1),
        ends_(options.seed, 2),
        failures_(options.seed, 3) {}

  [[nodiscard]] executor_capabilities capabilities() const override { return {}; }
  void submit(step_ptr plan) override { queue_.push_back(std::move(plan)); }

  step_ptr await() override {
    step_ptr plan = std::move(queue_.front());
    queue_.pop_front();
    const std::uint64_t number = plan->id.raw();
    if (options_.dies_in_step > 0 && number >= options_.dies_in_step) {
      throw std::runtime_error("the test's device is lost");
    }
    const auto limit = static_cast<std::uint64_t>(options_.duration_us_max) + 1;
    const auto duration = static_cast<std::int64_t>(durations_.below(number, limit));
    if (duration > 0) std::this_thread::sleep_for(std::chrono::microseconds{duration});
    if (failures_.below(number, 1000) < options_.failures_per_1000) {
      plan->result.status = step_status::failed;
    } else {
      sample(*plan);
    }
    return plan;
  }

 private:
  void sample(step& plan) const {
    std::uint64_t draw = plan.id.raw() << 16;
    for (std::uint32_t i = 0; i < plan.work.size(); ++i) {
      const sequence_work& work = plan.work[i];
      const std::int32_t known = work.first_position.raw() + work.count.raw() + 1;
      for (std::uint16_t k = 0; k < work.samples; ++k, ++draw) {
        if (ends_.below(draw, 1000) < options_.ends_per_1000) {
          plan.result.finishes.push_back(
              {i, k, ends_.bits(~draw) % 2 == 0 ? finish_kind::eos : finish_kind::stop_string});
        }
        // As if the token were known: the key of a block that it completes.
        if (known % options_.block_size.raw() == 0) {
          const std::uint64_t name = work.request.raw() << 8 | work.sample | k;
          plan.result.output_keys.emplace_back(
              i, block_key{traces::mix(name), static_cast<std::uint64_t>(known)});
        }
      }
    }
  }

  random_executor_options options_;
  traces::random_stream durations_;
  traces::random_stream ends_;
  traces::random_stream failures_;
  std::deque<step_ptr> queue_;
};

}  // namespace octavo::test
