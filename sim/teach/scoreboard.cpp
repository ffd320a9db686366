// Numbers and the sentence that compares them: see scoreboard.hpp.
#include "sim/teach/scoreboard.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "sim/teach/words.hpp"

namespace octavo::sim::teach {
namespace {

reason most_waited_for(const recording& run) {
  const auto most =
      std::ranges::max_element(run.waited_us, {}, [](const auto& entry) { return entry.second; });
  return most == run.waited_us.end() ? reason::routed : most->first;
}

std::string cause_of(reason why) {
  switch (why) {
    case reason::static_batch_running:
      return "for a static batch to end";
    case reason::waiting_for_batch:
      return "for a static batch to fill";
    case reason::batch_full:
      return "for a free place in the batch";
    case reason::no_budget:
      return "for room in the token budget";
    case reason::no_free_blocks:
      return "for free KV blocks";
    case reason::preemption_hold:
      return "while others gave blocks back";
    case reason::watermark_hold:
      return "for KV blocks above the watermark";
    default:
      return "in the queue";
  }
}

class mean_of {
 public:
  void add(micros value) {
    sum_ += value;
    ++count_;
  }
  [[nodiscard]] micros value() const { return count_ > 0 ? micros{sum_.raw() / count_} : micros{}; }

 private:
  micros sum_;
  std::int64_t count_ = 0;
};

micros longest_gap(const lifeline& life) {
  micros longest;
  for (std::size_t k = 1; k < life.token_times.size(); ++k) {
    longest = std::max(longest, life.token_times[k] - life.token_times[k - 1]);
  }
  return longest;
}

std::string factor(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f times", value);
  return text.data();
}

double ratio(micros a, micros b) {
  return static_cast<double>(a.raw()) / static_cast<double>(std::max<std::int64_t>(b.raw(), 1));
}

std::string kind_of_waste(const token_sums& t) {
  if (t.padding >= t.recomputed && t.padding >= t.overrun) return "padding";
  return t.recomputed >= t.overrun ? "computed twice" : "past an answer's end";
}

double wasted_share(const score& s) {
  return static_cast<double>(s.tokens.wasted()) /
         static_cast<double>(std::max<std::int64_t>(s.tokens.all(), 1));
}

// What the slower run lost that the faster one did not.
std::string because(const score& fast, const score& slow) {
  std::string text;
  if (wasted_share(slow) > wasted_share(fast) + 0.01) {
    text += percent(wasted_share(slow), 1) + " of the tokens that " + slow.name + " computes are " +
            kind_of_waste(slow.tokens) + " (" + fast.name + ": " + percent(wasted_share(fast), 1) +
            " wasted)";
  }
  if (ratio(slow.wait_mean, fast.wait_mean) > 1.1) {
    if (!text.empty()) text += ", and ";
    text += "under " + slow.name + " a request waits " + readable(slow.wait_mean) +
            " on average instead of " + readable(fast.wait_mean) + ", mostly " +
            cause_of(slow.waited_for);
  }
  if (text.empty() && slow.steps > fast.steps) {
    text = slow.name + " takes " + std::to_string(slow.steps) + " steps where " + fast.name +
           " takes " + std::to_string(fast.steps);
  }
  return text;
}

std::string price_of(const score& fast, const score& slow) {
  std::string text;
  if (ratio(fast.gap_max, slow.gap_max) > 1.1) {
    text = " Its price: the longest pause between two tokens is " + readable(fast.gap_max) +
           " instead of " + readable(slow.gap_max) + ".";
  } else if (ratio(fast.ttft_mean, slow.ttft_mean) > 1.1) {
    text = " Its price: the first token comes after " + readable(fast.ttft_mean) +
           " on average instead of " + readable(slow.ttft_mean) + ".";
  }
  return text;
}

}  // namespace

score score_of(std::string name, const recording& run, const simulation_outcome& outcome) {
  score s;
  s.name = std::move(name);
  s.tokens = run.tokens;
  s.steps = outcome.steps;
  s.preemptions = outcome.preemptions;
  s.waited_for = most_waited_for(run);
  micros first = micros::max();
  micros last;
  mean_of ttft;
  mean_of wait;
  std::int64_t generated = 0;
  for (const request_outcome& r : outcome.requests) {
    if (r.arrival >= micros{0}) first = std::min(first, r.arrival);
    if (r.completed()) ++s.completed;
    generated += r.output_tokens.raw();
    if (r.admitted >= micros{0}) wait.add(r.admitted - r.arrival);
    if (r.first_token < micros{0}) continue;
    ttft.add(r.first_token - r.arrival);
    last = std::max(last, r.last_token);
  }
  for (const lifeline& life : run.lives) s.gap_max = std::max(s.gap_max, longest_gap(life));
  if (last > micros{0}) s.makespan = last - first;
  s.ttft_mean = ttft.value();
  s.wait_mean = wait.value();
  if (s.makespan > micros{0}) {
    s.tokens_per_s = static_cast<double>(generated) / static_cast<double>(s.makespan.raw()) * 1e6;
  }
  return s;
}

std::vector<std::string> table_of(const std::vector<score>& scores) {
  constexpr std::size_t label_columns = 34;
  constexpr std::size_t value_columns = 15;
  std::vector<std::string> lines;
  const auto row = [&](std::string label, const std::function<std::string(const score&)>& value) {
    label.resize(std::max(label.size(), label_columns), ' ');
    for (const score& s : scores) {
      const std::string text = value(s);
      label += std::string(value_columns - std::min(value_columns, text.size()), ' ') + text;
    }
    lines.push_back(std::move(label));
  };
  row("", [](const score& s) { return s.name; });
  row("makespan (arrival to last token)", [](const score& s) { return readable(s.makespan); });
  row("mean TTFT (time to first token)", [](const score& s) { return readable(s.ttft_mean); });
  row("longest gap between two tokens", [](const score& s) { return readable(s.gap_max); });
  row("mean wait in the queue", [](const score& s) { return readable(s.wait_mean); });
  row("tokens generated per second", [](const score& s) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f", s.tokens_per_s);
    return std::string(text.data());
  });
  row("computed tokens wasted", [](const score& s) {
    return percent(static_cast<double>(s.tokens.wasted()), static_cast<double>(s.tokens.all()));
  });
  row("steps", [](const score& s) { return std::to_string(s.steps); });
  row("preemptions", [](const score& s) { return std::to_string(s.preemptions); });
  row("requests completed", [](const score& s) { return std::to_string(s.completed); });
  return lines;
}

std::string comparison(const score& base, const score& other) {
  if (base.makespan == micros{0} || other.makespan == micros{0}) {
    return "There is nothing to compare: no token was generated under " +
           (base.makespan == micros{0} ? base.name : other.name) + ".";
  }
  const bool sooner = other.makespan <= base.makespan;
  const score& fast = sooner ? other : base;
  const score& slow = sooner ? base : other;
  const double gain = ratio(slow.makespan, fast.makespan);
  std::string text;
  if (gain < 1.05) {
    text = fast.name + " and " + slow.name + " end at about the same time";
    const bool earlier = other.ttft_mean <= base.ttft_mean;
    const score& prompt = earlier ? other : base;
    const score& late = earlier ? base : other;
    const double ttft = ratio(late.ttft_mean, prompt.ttft_mean);
    if (ttft < 1.05) return text + ", and their first tokens come as soon.";
    text += ", but under " + prompt.name + " the first token comes " + factor(ttft) + " sooner";
    const std::string why = because(prompt, late);
    return text + (why.empty() ? "" : ", because " + why) + "." + price_of(prompt, late);
  }
  text = fast.name + " ends " + factor(gain) + " sooner than " + slow.name;
  const std::string why = because(fast, slow);
  return text + (why.empty() ? "" : ", because " + why) + "." + price_of(fast, slow);
}

}  // namespace octavo::sim::teach
