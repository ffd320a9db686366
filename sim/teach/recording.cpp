// From records to lifelines: see recording.hpp.
#include "sim/teach/recording.hpp"

#include <algorithm>
#include <utility>

namespace octavo::sim::teach {

void recorder::on_record(const decision_record& record) {
  if (!record.ran.empty()) ++steps_;
  if (steps_ <= steps_max_) records_.push_back(record);
}

const held_record* head_of_queue(const decision_record& record) {
  const auto found = std::ranges::find_if(
      record.held, [](const held_record& h) { return h.why != reason::chunked_to_budget; });
  return found == record.held.end() ? nullptr : &*found;
}

namespace {

// A step runs from its plan, or the end of the step before it, to its result.
// A record that led to no step shares its number with the one that did.
std::vector<step_interval> intervals_of(const std::vector<decision_record>& records) {
  std::vector<step_interval> intervals(records.size());
  std::map<step_id, std::size_t> planned;
  micros busy_until;
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (const input_record& input : records[i].inputs) {
      if (input.kind != input_kind::result || !planned.contains(input.step)) continue;
      const std::size_t at = planned[input.step];
      intervals[at] = {std::max(records[at].now, busy_until), input.stamp,
                       !records[at].ran.empty()};
      busy_until = std::max(busy_until, input.stamp);
    }
    planned[records[i].step] = i;
    intervals[i] = {records[i].now, records[i].now, false};
  }
  return intervals;
}

// Walks the records and lays each request's spans end to end.
class tracer {
 public:
  tracer(recording& out, std::size_t requests) : out_(out), rows_(requests) {
    out_.lives.resize(requests);
  }

  void add(const decision_record& record, const step_interval& step) {
    for (const finished_record& f : record.finished) end(f.who, record.now);
    for (const input_record& input : record.inputs) {
      if (input.kind == input_kind::submit) arrive(record, input);
    }
    for (const preempted_record& p : record.preempted) {
      row* r = find(p.victim);
      if (r == nullptr) continue;
      fill(p.victim, step.from);
      r->gap = activity::preempted;
    }
    for (const admitted_record& a : record.admitted) {
      row* r = find(a.who);
      if (r == nullptr) continue;
      fill(a.who, step.from);
      r->gap = activity::stalled;
      r->position = a.hit_tokens.raw();
      if (a.hit_tokens.raw() > 0) out_.lives[a.who.request.raw()].hits.push_back(step.from);
    }
    if (!step.ran) return;
    for (const ran_record& ran : record.ran) compute(record, ran, step);
  }

 private:
  struct row {
    micros until;
    activity gap = activity::absent;
    std::int64_t position = 0;  ///< tokens of it that are computed
    std::int64_t reached = 0;   ///< the most that ever were
    bool ended = false;
  };

  row* find(const sequence_name& who) {
    return who.request.raw() < rows_.size() ? &rows_[who.request.raw()] : nullptr;
  }
  std::vector<span>& spans(const sequence_name& who) { return out_.lives[who.request.raw()].spans; }

  void push(const sequence_name& who, micros from, micros to, activity what) {
    if (to <= from) return;
    auto& list = spans(who);
    list.push_back({from, to, what});
  }

  void fill(const sequence_name& who, micros to) {
    row& r = *find(who);
    if (r.gap != activity::absent) push(who, r.until, to, r.gap);
    r.until = std::max(r.until, to);
  }

  void arrive(const decision_record& record, const input_record& input) {
    const sequence_name who{input.request, 0};
    row* r = find(who);
    const bool refused = std::ranges::any_of(record.finished, [&](const finished_record& f) {
      return f.who.request == input.request && is_rejection(f.why);
    });
    if (r == nullptr) return;
    if (refused) {
      out_.lives[input.request.raw()].rejected = input.stamp;
      return;
    }
    r->until = input.stamp;
    r->gap = activity::waiting;
  }

  // What was planned ahead of an end that nobody knew of is good for nothing.
  void end(const sequence_name& who, micros now) {
    row* r = find(who);
    if (r == nullptr) return;
    fill(who, now);
    r->gap = activity::absent;
    r->ended = true;
    for (span& s : spans(who)) {
      if (s.from < now || s.what == activity::waste) continue;
      s.what = activity::waste;
      --out_.tokens.useful;
      ++out_.tokens.overrun;
    }
    std::erase_if(out_.lives[who.request.raw()].token_times, [&](micros t) { return t > now; });
  }

  void compute(const decision_record& record, const ran_record& ran, const step_interval& step) {
    row* r = find(ran.who);
    if (r == nullptr) return;
    fill(ran.who, step.from);
    const std::int64_t again =
        std::clamp<std::int64_t>(r->reached - r->position, 0, ran.tokens.raw());
    const std::int64_t fresh = ran.tokens.raw() - again;
    out_.tokens.useful += fresh;
    out_.tokens.recomputed += again;
    out_.tokens.padding += ran.padding.raw();
    r->position += ran.tokens.raw();
    r->reached = std::max(r->reached, r->position);
    lay(ran, step, again, fresh);
    r->until = step.to;
    const bool cut = std::ranges::any_of(record.held, [&](const held_record& h) {
      return h.who == ran.who && h.why == reason::chunked_to_budget;
    });
    if (ran.tokens.raw() > 0 && !cut) {
      out_.lives[ran.who.request.raw()].token_times.push_back(step.to);
    }
  }

  // The step's time is shared out by tokens: computed twice, new, padded.
  void lay(const ran_record& ran, const step_interval& step, std::int64_t again,
           std::int64_t fresh) {
    const std::int64_t all = again + fresh + ran.padding.raw();
    std::int64_t done = 0;
    const auto part = [&](std::int64_t tokens, activity what) {
      const std::int64_t length = (step.to - step.from).raw();
      const micros from = step.from + micros{length * done / all};
      done += tokens;
      push(ran.who, from, step.from + micros{length * done / all}, what);
    };
    part(again, activity::waste);
    part(fresh, ran.decode ? activity::decode : activity::prefill);
    part(ran.padding.raw(), activity::waste);
  }

  recording& out_;
  std::vector<row> rows_;
};

// How many wait after each record, and for how long until the next.
void add_waits(recording& out) {
  std::int64_t previous_us = 0;
  std::int64_t waiting = 0;
  const held_record* head = nullptr;
  for (const decision_record& record : out.records) {
    if (head != nullptr) out.waited_us[head->why] += waiting * (record.now.raw() - previous_us);
    head = head_of_queue(record);
    waiting = 1 + record.behind;
    previous_us = record.now.raw();
  }
}

}  // namespace

recording make_recording(std::vector<decision_record> records, std::size_t requests) {
  recording out;
  out.records = std::move(records);
  out.intervals = intervals_of(out.records);
  tracer trace{out, requests};
  for (std::size_t i = 0; i < out.records.size(); ++i) trace.add(out.records[i], out.intervals[i]);
  add_waits(out);
  return out;
}

}  // namespace octavo::sim::teach
