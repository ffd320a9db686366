// Finding the replica that served a request, and printing its life: see
// explain.hpp.
#include "sim/teach/explain.hpp"

#include <algorithm>
#include <deque>
#include <ostream>
#include <string>

#include "core/error.hpp"
#include "sim/teach/life.hpp"
#include "sim/teach/words.hpp"

namespace octavo::sim {
namespace {

using namespace teach;

constexpr std::size_t text_columns = 100;

std::string cell_text(std::string text, std::size_t columns) {
  text.resize(std::max(columns, text.size() + 2), ' ');
  return text;
}

std::string steps_of(const chapter& c) {
  if (c.first_step == 0) return {};
  const std::string first = std::to_string(c.first_step);
  if (c.first_step == c.last_step) return "step " + first;
  return "steps " + first + "-" + std::to_string(c.last_step);
}

void print_chapters(const life_listener& life, std::ostream& out) {
  constexpr std::size_t at_columns = 12;
  constexpr std::size_t for_columns = 11;
  constexpr std::size_t step_columns = 16;
  constexpr std::size_t indent = at_columns + for_columns + step_columns;
  out << cell_text("at", at_columns) << cell_text("for", for_columns)
      << cell_text("in", step_columns) << "what happens\n";
  for (const chapter& c : life.chapters()) {
    const std::string length = c.to > c.from ? readable(c.to - c.from) : "";
    const std::string margin = cell_text(readable(c.from), at_columns) +
                               cell_text(length, for_columns) +
                               cell_text(steps_of(c), step_columns);
    out << wrapped(margin + c.text, text_columns, indent) << '\n';
  }
}

void print_share(const std::string& name, micros part, micros whole, std::ostream& out) {
  if (part <= micros{0}) return;
  out << "  " << cell_text(name, 44) << cell_text(readable(part), 11)
      << percent(static_cast<double>(part.raw()), static_cast<double>(whole.raw())) << '\n';
}

void print_summary(const life_listener& life, std::ostream& out) {
  const life_sums& s = life.sums();
  const micros whole = life.ended() - life.arrived();
  out << "\nWhere its " << readable(whole) << " went\n";
  print_share("in the queue", s.queued, whole, out);
  print_share("in the queue again after preemption", s.preempted, whole, out);
  print_share("prefill", s.prefill, whole, out);
  print_share("decode", s.decode, whole, out);
  print_share("admitted, but without a token", s.stalled, whole, out);
  print_share("admitted, before the planned step began",
              whole - s.queued - s.preempted - s.prefill - s.decode - s.stalled, whole, out);
  const micros waited = s.queued + s.preempted;
  if (waited > micros{0}) {
    out << "What it waited for, of " << readable(waited) << '\n';
    for (const auto& [why, time] : s.waited_for) print_share(why, time, waited, out);
  }
  out << "Tokens: " << s.hit_tokens << " found in the prefix cache, " << s.prompt_computed
      << " computed in prefill";
  if (s.padding > 0) out << ", " << s.padding << " of padding";
  out << ", " << s.tokens << " generated";
  if (s.tokens > 1) out << "; longest gap between two " << readable(s.gap_max);
  out << ".\nPreemptions: " << s.preemptions << ".\n";
}

}  // namespace

void explain_request(const simulation_options& options, std::uint32_t index, std::ostream& out) {
  std::size_t count = options.trace == nullptr ? 0 : options.trace->requests.size();
  if (options.work.requests > 0) count = std::min<std::size_t>(count, options.work.requests);
  if (index >= count) {
    throw input_error(
        "explain: there is no request " + std::to_string(index) +
        (count == 0 ? "; the run has none" : "; the run has 0 to " + std::to_string(count - 1)));
  }
  std::deque<life_listener> listeners;  // each stays where it is
  simulation_options run = options;
  run.log_file = nullptr;
  run.decision_log = false;
  run.observe = [&](std::uint32_t) { return &listeners.emplace_back(request_id{index}); };
  const simulation_outcome outcome = simulate(run);

  const std::string name = options.trace->name_of(index);
  out << "Request " << index;
  if (name != std::to_string(index)) out << " \"" << printable(name, true) << '"';
  const auto served = std::ranges::find_if(listeners, &life_listener::met);
  if (served == listeners.end()) {
    out << " never arrived: the request that it follows did not complete.\n";
    return;
  }
  if (options.replicas > 1) out << ", on replica " << served - listeners.begin();
  out << "; step times: " << options.cost->source() << "\n\n";
  print_chapters(*served, out);
  print_summary(*served, out);
}

}  // namespace octavo::sim
