// One request's life from the decisions of its replica: see life.hpp.
#include "sim/teach/life.hpp"

#include <algorithm>

#include "sim/teach/recording.hpp"
#include "sim/teach/words.hpp"

namespace octavo::sim::teach {
namespace {

constexpr std::string_view between_steps = "between_steps";

template <class Record>
const Record* entry_of(const std::vector<Record>& list, request_id who) {
  const auto found =
      std::ranges::find_if(list, [&](const Record& r) { return r.who.request == who; });
  return found == list.end() ? nullptr : &*found;
}

std::string crowd(const std::set<request_id>& ids) {
  if (ids.empty()) return "nobody";
  std::vector<std::uint64_t> numbers;
  for (const request_id id : ids) numbers.push_back(id.raw());
  return list_of(numbers, 8);
}

}  // namespace

void life_listener::on_record(const decision_record& record) {
  if (phase_ == phase::unmet) {
    const auto submit = std::ranges::find_if(record.inputs, [&](const input_record& input) {
      return input.kind == input_kind::submit && input.request == who_;
    });
    const bool came = submit != record.inputs.end();
    // Whoever ended after it came, but before the scheduler heard of it, was there.
    if (!came || submit->stamp >= record.now) forget_ended(record);
    watch_others(record);
    if (!came) return;
    arrive(record, *submit);
  }
  book_results(record);
  if (phase_ == phase::waiting) pass_wait(record.now);
  book_end(record);
  for (const preempted_record& p : record.preempted) {
    if (p.victim.request == who_) give_way(record, p);
  }
  if (const auto* admitted = entry_of(record.admitted, who_)) leave_queue(record, *admitted);
  if (phase_ == phase::waiting) wait(record);
  plan(record);
}

void life_listener::forget_ended(const decision_record& record) {
  for (const finished_record& f : record.finished) {
    running_before_.erase(f.who.request);
    waiting_before_.erase(f.who.request);
  }
}

// Before the request is there: who waits and who runs.
void life_listener::watch_others(const decision_record& record) {
  for (const input_record& input : record.inputs) {
    if (input.kind != input_kind::submit) continue;
    if (input.request == who_) return;
    const finished_record* refused = entry_of(record.finished, input.request);
    if (refused == nullptr) waiting_before_.insert(input.request);
  }
  for (const preempted_record& p : record.preempted) {
    running_before_.erase(p.victim.request);
    waiting_before_.insert(p.victim.request);
  }
  for (const admitted_record& a : record.admitted) {
    waiting_before_.erase(a.who.request);
    running_before_.insert(a.who.request);
  }
}

void life_listener::arrive(const decision_record& record, const input_record& input) {
  arrived_ = input.stamp;
  waiting_since_ = input.stamp;
  waiting_for_ = between_steps;
  phase_ = phase::waiting;
  say(input.stamp, "Arrives with a prompt of " + counted(input.prompt_tokens.raw(), "token") +
                       "; it may generate " + std::to_string(input.max_tokens.raw()) +
                       ". Before it: in the queue " + crowd(waiting_before_) + ", running " +
                       crowd(running_before_) + ".");
  if (record.now > input.stamp) {
    chapter& c = chapters_.emplace_back();
    c.from = input.stamp;
    c.to = record.now;
    c.text = "Waits: a step runs, and decisions are made between steps.";
  }
  waiting_before_.clear();
  running_before_.clear();
}

void life_listener::pass_wait(micros now) {
  const micros passed = now - waiting_since_;
  (was_admitted_ ? sums_.preempted : sums_.queued) += passed;
  sums_.waited_for[waiting_for_] += passed;
  waiting_since_ = now;
  if (open_wait_ > 0) chapters_[open_wait_ - 1].to = now;
}

void life_listener::wait(const decision_record& record) {
  const held_record* head = head_of_queue(record);
  if (head == nullptr) return;
  const bool first = head->who.request == who_;
  const std::string key = std::string(to_string(head->why)) +
                          (first ? "" : " of " + std::to_string(head->who.request.raw()));
  waiting_for_ = first ? std::string(to_string(head->why))
                       : "behind_head, itself " + std::string(to_string(head->why));
  if (open_wait_ == 0 || chapters_[open_wait_ - 1].key != key) {
    chapter& c = chapters_.emplace_back();
    open_wait_ = chapters_.size();
    c.from = c.to = record.now;
    c.key = key;
  }
  chapter& c = chapters_[open_wait_ - 1];
  c.text = sentence(head->why, head->a, head->b);
  if (!first) {
    c.text = sentence(reason::behind_head, static_cast<std::int64_t>(head->who.request.raw()), 0) +
             " Of that one: " + c.text;
  }
  if (record.ran.empty()) return;
  if (c.first_step == 0) c.first_step = record.step.raw();
  c.last_step = record.step.raw();
  ++c.steps;
}

void life_listener::leave_queue(const decision_record& record, const admitted_record& admitted) {
  phase_ = phase::running;
  was_admitted_ = true;
  open_wait_ = 0;
  if (admitted.why != reason::resumed) sums_.hit_tokens = admitted.hit_tokens.raw();
  chapter& c = chapters_.emplace_back();
  c.from = c.to = record.now;
  c.text = sentence(admitted.why, admitted.hit_tokens.raw(), 0);
}

void life_listener::give_way(const decision_record& record, const preempted_record& preempted) {
  phase_ = phase::waiting;
  waiting_since_ = record.now;
  ++sums_.preemptions;
  std::string text = sentence(reason::preempted_for,
                              static_cast<std::int64_t>(preempted.requester.request.raw()), 0);
  if (preempted.requester == preempted.victim) {
    text += " That is itself: it could not grow, nobody came later.";
  }
  say(record.now, std::move(text));
}

// Remembers a step until its result tells when it ran.
void life_listener::plan(const decision_record& record) {
  if (record.ran.empty() || phase_ == phase::unmet) return;
  planned next{record.now, std::nullopt, false};
  if (const ran_record* work = entry_of(record.ran, who_)) {
    next.work = *work;
    next.cut = std::ranges::any_of(record.held, [&](const held_record& h) {
      return h.who.request == who_ && h.why == reason::chunked_to_budget;
    });
  }
  if (next.work || phase_ == phase::running) in_flight_[record.step] = next;
}

void life_listener::book_results(const decision_record& record) {
  for (const input_record& input : record.inputs) {
    if (input.kind != input_kind::result) continue;
    const auto step = in_flight_.find(input.step);
    if (step != in_flight_.end()) {
      book_step(step->second, input.step, std::max(step->second.at, busy_until_), input.stamp);
      in_flight_.erase(step);
    }
    busy_until_ = input.stamp;
  }
}

void life_listener::book_step(const planned& plan, step_id step, micros from, micros to) {
  if (!plan.work) {
    if (phase_ != phase::running) return;
    sums_.stalled += to - from;
    stretch(from, to, "stalled", step).text = "Admitted, but without a token in these steps.";
    return;
  }
  const ran_record& work = *plan.work;
  sums_.padding += work.padding.raw();
  if (phase_ == phase::over) {
    stretch(from, to, "over", step).text =
        work.tokens.raw() == 0
            ? "Its place stays taken, with a padding token each step, until the batch ends."
            : "A step planned ahead computes a token past its end.";
    return;
  }
  (work.decode ? sums_.decode : sums_.prefill) += to - from;
  chapter& c = stretch(from, to, work.decode ? "decode" : "prefill", step);
  c.tokens += work.tokens.raw();
  if (work.decode) {
    c.text = "Decode: " + counted(c.tokens, "token") + ", one a step.";
  } else {
    sums_.prompt_computed += work.tokens.raw();
    c.text = "Prefill: " + counted(c.tokens, "token");
    if (c.steps > 1) c.text += " in " + std::to_string(c.steps) + " chunks";
    if (work.padding.raw() > 0) {
      c.text += ", padded by " + std::to_string(work.padding.raw()) + " to the longest prompt";
    }
    c.text += ".";
    if (plan.cut) c.text += " Cut to the step's budget.";
  }
  if (!plan.cut) book_token(to);
  // Preempted while this step was in flight, it lost its place only now.
  if (phase_ == phase::waiting) waiting_since_ = std::max(waiting_since_, to);
}

void life_listener::book_token(micros at) {
  ++sums_.tokens;
  if (last_token_ < micros{0}) {
    say(at, "First token, " + readable(at - *arrived_) + " after arrival.");
  } else {
    sums_.gap_max = std::max(sums_.gap_max, at - last_token_);
  }
  last_token_ = at;
}

void life_listener::book_end(const decision_record& record) {
  const finished_record* end = entry_of(record.finished, who_);
  if (end == nullptr || phase_ == phase::over) return;
  phase_ = phase::over;
  open_wait_ = 0;
  ended_ = record.now;
  say(record.now, sentence(end->why, end->a, end->b));
}

chapter& life_listener::stretch(micros from, micros to, const std::string& key, step_id step) {
  const auto last = std::ranges::find(chapters_.rbegin(), chapters_.rend(), key, &chapter::key);
  const bool goes_on = last != chapters_.rend() && last->last_step + 1 == step.raw();
  chapter& c = goes_on ? *last : chapters_.emplace_back();
  if (!goes_on) {
    c.from = from;
    c.first_step = step.raw();
    c.key = key;
  }
  c.to = to;
  c.last_step = step.raw();
  ++c.steps;
  return c;
}

void life_listener::say(micros at, std::string text) {
  chapter& c = chapters_.emplace_back();
  c.from = c.to = at;
  c.text = std::move(text);
}

std::vector<chapter> life_listener::chapters() const {
  std::vector<chapter> ordered = chapters_;
  std::ranges::stable_sort(ordered, {}, &chapter::from);
  return ordered;
}

}  // namespace octavo::sim::teach
