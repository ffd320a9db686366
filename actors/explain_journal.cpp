// Bounded history of decisions by request: see explain_journal.hpp.
#include "actors/explain_journal.hpp"

#include <cstdio>

namespace octavo::actors {
namespace {

/// Distinct lines kept of one request; the rest is counted into the last.
constexpr std::size_t max_entries = 256;

std::string seconds(micros moment) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", static_cast<double>(moment.raw()) * 1e-6);
  return text;
}

}  // namespace

void explain_journal::add(const decision_record& record, const sequence_name& who, reason why,
                          std::int64_t a, std::int64_t b) {
  const auto found = entries_.find(who.request.raw());
  if (found == entries_.end()) return;
  auto& list = found->second;
  const bool repeats = !list.empty() && list.back().why == why && list.back().sample == who.sample;
  if (repeats || list.size() >= max_entries) {
    entry& last = list.back();
    last.until = record.now;
    last.a = a;
    last.b = b;
    ++last.times;
    return;
  }
  list.push_back({record.now, record.now, why, who.sample, a, b, 1, {}});
}

void explain_journal::on_record(const decision_record& record) {
  for (const input_record& input : record.inputs) {
    if (input.kind != input_kind::submit) continue;
    if (!entries_.try_emplace(input.request.raw()).second) continue;
    order_.push_back(input.request.raw());
    entry arrival{input.stamp, input.stamp, reason::routed, 0, 0, 0, 1, {}};
    arrival.note = "Submitted: " + std::to_string(input.prompt_tokens.raw()) +
                   " prompt tokens, at most " + std::to_string(input.max_tokens.raw()) +
                   " to generate.";
    entries_[input.request.raw()].push_back(std::move(arrival));
    if (order_.size() > capacity_) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
  }
  for (const auto& p : record.preempted) {
    add(record, p.victim, reason::preempted_for,
        static_cast<std::int64_t>(p.requester.request.raw()), 0);
  }
  for (const auto& a : record.admitted) add(record, a.who, a.why, a.hit_tokens.raw(), 0);
  for (const auto& h : record.held) add(record, h.who, h.why, h.a, h.b);
  for (const auto& f : record.finished) add(record, f.who, f.why, f.a, f.b);
}

std::string explain_journal::explain(request_id id) const {
  const auto found = entries_.find(id.raw());
  if (found == entries_.end()) {
    return "Request " + std::to_string(id.raw()) +
           " is not known, or is older than what is kept.\n";
  }
  std::string text;
  for (const entry& e : found->second) {
    text += seconds(e.from) + " s";
    if (e.times > 1) {
      text += " to " + seconds(e.until) + " s (" + std::to_string(e.times) + " steps)";
    }
    if (e.sample > 0) text += ", sample " + std::to_string(e.sample);
    text += "  " + (e.note.empty() ? sentence(e.why, e.a, e.b) : e.note) + "\n";
  }
  return text;
}

}  // namespace octavo::actors
