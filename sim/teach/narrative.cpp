// Decisions in words: see narrative.hpp.
#include "sim/teach/narrative.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/teach/words.hpp"

namespace octavo::sim::teach {
namespace {

using id_list = std::vector<std::uint64_t>;

std::string with_tokens(std::uint64_t id, token_count tokens) {
  return std::to_string(id) + " (" + counted(tokens.raw(), "token") + ")";
}

void append(std::string& list, const std::string& item) {
  if (!list.empty()) list += ", ";
  list += item;
}

void tell(std::vector<remark>& remarks, std::string verb, std::string text) {
  std::string key = text;
  if (!text.empty()) remarks.push_back({std::move(verb), std::move(text), std::move(key)});
}

// A reason's sentence starts with its verb where it can: "Waits: …".
struct verdict {
  std::string verb;
  std::string rest;
};

verdict verdict_of(const std::string& said, const std::string& otherwise) {
  const std::size_t colon = said.find(": ");
  if (colon == std::string::npos || said.find(' ') < colon) return {otherwise, said};
  std::string verb = said.substr(0, colon);
  verb[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(verb[0])));
  return {std::move(verb), said.substr(colon + 2)};
}

// Requests of whom the same sentence is true, in one remark each.
class grouped {
 public:
  void add(std::uint64_t id, std::string said) {
    for (auto& [ids, known] : groups_) {
      if (known != said) continue;
      ids.push_back(id);
      return;
    }
    groups_.push_back({{id}, std::move(said)});
  }
  void tell_all(std::vector<remark>& remarks, const std::string& otherwise) const {
    for (const auto& [ids, said] : groups_) {
      verdict v = verdict_of(said, otherwise);
      tell(remarks, std::move(v.verb), list_of(ids) + ": " + v.rest);
    }
  }

 private:
  std::vector<std::pair<id_list, std::string>> groups_;
};

void tell_events(const decision_record& record, const std::vector<std::string>& names,
                 micros origin, std::vector<remark>& out) {
  grouped ends;
  for (const finished_record& f : record.finished) {
    ends.add(f.who.request.raw(), sentence(f.why, f.a, f.b));
  }
  std::string arrivals;
  for (const input_record& input : record.inputs) {
    if (input.kind != input_kind::submit) continue;
    const std::uint64_t id = input.request.raw();
    const std::string& name = id < names.size() ? names[id] : std::to_string(id);
    append(arrivals,
           name + " (" + std::to_string(input.prompt_tokens.raw()) + "-token prompt" +
               (input.stamp < record.now ? ", at " + readable(input.stamp - origin) : "") + ")");
  }
  grouped victims;
  for (const preempted_record& p : record.preempted) {
    const auto requester = static_cast<std::int64_t>(p.requester.request.raw());
    std::string said = sentence(reason::preempted_for, requester, 0);
    if (p.victim == p.requester) said += " That is itself: it could not grow, nobody came later.";
    victims.add(p.victim.request.raw(), std::move(said));
  }
  grouped admitted;
  for (const admitted_record& a : record.admitted) {
    admitted.add(a.who.request.raw(), sentence(a.why, a.hit_tokens.raw(), 0));
  }
  tell(out, "arrives", arrivals);
  ends.tell_all(out, "finished");
  victims.tell_all(out, "preempted");
  admitted.tell_all(out, "admitted");
}

void tell_work(const decision_record& record, std::vector<remark>& out) {
  std::string prefill;
  id_list decode;
  id_list places;
  for (const ran_record& ran : record.ran) {
    const std::uint64_t id = ran.who.request.raw();
    if (ran.tokens.raw() == 0) {
      places.push_back(id);
    } else if (ran.decode) {
      decode.push_back(id);
    } else {
      std::string item = with_tokens(id, ran.tokens);
      if (ran.padding.raw() > 0) {
        item.pop_back();
        item += " + " + std::to_string(ran.padding.raw()) + " of padding)";
      }
      append(prefill, item);
    }
  }
  tell(out, "prefill", prefill);
  if (!decode.empty()) tell(out, "decode", list_of(decode) + ": one token each.");
  if (!places.empty()) {
    tell(out, "waste",
         list_of(places) + ": the text has ended, the batch has not; a padding token each.");
  }
}

void tell_waits(const decision_record& record, std::vector<remark>& out) {
  for (const held_record& h : record.held) {
    const std::string id = std::to_string(h.who.request.raw());
    const bool cut = h.why == reason::chunked_to_budget;
    verdict v = verdict_of(sentence(h.why, h.a, h.b), cut ? "cut" : "waits");
    std::string key = id + std::string(to_string(h.why));
    if (!cut && record.behind > 0) {
      v.rest += " " + std::to_string(record.behind) + " more behind it.";
      key += " " + std::to_string(record.behind);
    }
    out.push_back({std::move(v.verb), id + ": " + v.rest, std::move(key)});
  }
}

bool same_state(const std::vector<remark>& a, const std::vector<remark>& b) {
  return std::ranges::equal(
      a, b, [](const remark& x, const remark& y) { return x.verb == y.verb && x.key == y.key; });
}

}  // namespace

std::vector<narrative_entry> narrate(const recording& run, const std::vector<std::string>& names,
                                     micros origin) {
  std::vector<narrative_entry> story;
  for (std::size_t i = 0; i < run.records.size(); ++i) {
    const decision_record& record = run.records[i];
    narrative_entry entry;
    entry.from = record.now - origin;
    if (run.intervals[i].ran) {
      entry.from = run.intervals[i].from - origin;
      entry.steps = {record.step.raw(), record.step.raw()};
    }
    tell_events(record, names, origin, entry.events);
    tell_work(record, entry.state);
    tell_waits(record, entry.state);
    if (entry.events.empty() && entry.state.empty()) continue;
    const bool goes_on = !story.empty() && entry.events.empty() &&
                         story.back().steps.empty() == entry.steps.empty() &&
                         same_state(story.back().state, entry.state);
    if (!goes_on) {
      story.push_back(std::move(entry));
    } else {
      if (!entry.steps.empty()) story.back().steps.back() = entry.steps.back();
      story.back().state = std::move(entry.state);
    }
  }
  return story;
}

}  // namespace octavo::sim::teach
