// The lesson's text from runs and pictures: see timeline.hpp.
#include "sim/teach/timeline.hpp"

#include <algorithm>
#include <ostream>
#include <string>

#include "core/error.hpp"
#include "sim/teach/gantt.hpp"
#include "sim/teach/narrative.hpp"
#include "sim/teach/recording.hpp"
#include "sim/teach/scoreboard.hpp"
#include "sim/teach/words.hpp"

namespace octavo::sim {
namespace {

using namespace teach;

constexpr std::size_t gap_columns = 3;
constexpr std::size_t text_columns_max = 110;
constexpr std::size_t cells_min = 60;  ///< for pictures side by side

struct lesson_run {
  std::string policy;
  recording run;
  score result;
};

void refuse_unreadable(const simulation_options& base, const timeline_options& o) {
  const auto fail = [](const std::string& text) { throw input_error("timeline: " + text); };
  if (base.trace == nullptr || base.trace->requests.empty()) fail("the trace has no request");
  std::size_t requests = base.trace->requests.size();
  if (base.work.requests > 0) requests = std::min<std::size_t>(requests, base.work.requests);
  if (requests > o.requests_max) {
    fail("the trace has " + std::to_string(requests) + " requests and more than " +
         std::to_string(o.requests_max) + " rows cannot be read; show the first with --requests " +
         std::to_string(o.requests_max) + ", or use --explain for one of them");
  }
  if (base.replicas != 1) {
    fail("it shows one replica, not " + std::to_string(base.replicas) +
         "; leave out --replicas, or use --chrome-trace to see all");
  }
  if (o.policies.empty()) fail("no policy is named");
  if (o.columns < 40) {
    fail(std::to_string(o.columns) + " columns are too narrow; at least 40 are needed");
  }
}

lesson_run run_policy(const simulation_options& base, const timeline_options& o,
                      policy_kind policy) {
  recorder heard{o.steps_max};
  simulation_options options = base;
  options.engine.policy = policy;
  options.decision_log = false;
  options.log_file = nullptr;
  options.progress = nullptr;
  options.observe = nullptr;
  options.observers = {&heard};
  const simulation_outcome outcome = simulate(options);
  const std::string name{to_string(policy)};
  if (heard.steps() > o.steps_max) {
    throw input_error("timeline: under " + name + " the run has " + std::to_string(heard.steps()) +
                      " steps and more than " + std::to_string(o.steps_max) +
                      " cannot be read; show fewer requests with --requests N, use a trace with "
                      "shorter outputs, or --chrome-trace F for a zoomable picture");
  }
  lesson_run lesson{name, make_recording(heard.records(), outcome.requests.size()), {}};
  lesson.result = score_of(name, lesson.run, outcome);
  return lesson;
}

std::vector<std::string> names_of(const traces::trace& trace, std::size_t count, bool utf8) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    names.push_back(std::to_string(i));
    if (!trace.ids.empty() && trace.ids[i] != names.back()) {
      names.back() += " " + printable(trace.ids[i], utf8);
    }
  }
  return names;
}

// One window for all, so that a shorter run looks shorter.
time_window window_of(const std::vector<lesson_run>& runs) {
  time_window w{micros::max(), micros{}, 1};
  for (const lesson_run& r : runs) {
    for (const lifeline& life : r.run.lives) {
      for (const span& s : life.spans) {
        w.from = std::min(w.from, s.from);
        w.to = std::max(w.to, s.to);
      }
    }
  }
  if (w.from >= w.to) w = {micros{}, micros{1}, 1};
  return w;
}

std::string title(const lesson_run& r) {
  return r.policy + ": " + readable(r.result.makespan) + " in all, " +
         counted(r.result.steps, "step");
}

void print_pictures(const std::vector<lesson_run>& runs, time_window window,
                    const std::vector<std::string>& names, const timeline_options& o,
                    std::set<cell>& used, std::ostream& out) {
  const std::size_t label = name_columns(names) + 1;
  const std::size_t beside = runs.size() * (label + cells_min) + (runs.size() - 1) * gap_columns;
  const bool side_by_side = runs.size() > 1 && o.columns >= beside;
  const std::size_t share = side_by_side ? runs.size() : 1;
  window.columns = (o.columns - (share - 1) * gap_columns) / share - label;
  std::vector<std::vector<drawn_line>> pictures;
  for (const lesson_run& r : runs) {
    picture p = draw(r.run, window, names, {o.utf8, o.colour});
    const std::string head = title(r);
    p.lines.insert(p.lines.begin(), {head, head.size()});
    used.insert(p.used.begin(), p.used.end());
    pictures.push_back(std::move(p.lines));
  }
  for (std::size_t begin = 0; begin < pictures.size(); begin += share) {
    for (std::size_t row = 0; row < pictures[begin].size(); ++row) {
      for (std::size_t k = begin; k < begin + share; ++k) {
        const drawn_line& line = pictures[k][row];
        out << line.text;
        if (k + 1 == begin + share) continue;
        out << std::string(label + window.columns + gap_columns - line.columns, ' ');
      }
      out << '\n';
    }
    out << '\n';
  }
}

std::string step_label(const narrative_entry& entry) {
  if (entry.steps.empty()) return "no step";
  const std::string first = std::to_string(entry.steps.front());
  if (entry.steps.front() == entry.steps.back()) return "step " + first;
  return "steps " + first + "-" + std::to_string(entry.steps.back());
}

void print_decisions(const lesson_run& r, const std::vector<std::string>& names, micros origin,
                     std::size_t columns, std::ostream& out) {
  constexpr std::size_t step_columns = 14;
  constexpr std::size_t time_columns = 10;
  constexpr std::size_t verb_columns = 11;
  const std::size_t indent = step_columns + time_columns + verb_columns;
  for (const narrative_entry& entry : narrate(r.run, names, origin)) {
    std::string margin = step_label(entry);
    margin.resize(step_columns, ' ');
    margin += readable(entry.from);
    margin.resize(step_columns + time_columns, ' ');
    const auto print = [&](const remark& line) {
      std::string text = margin + line.verb;
      text.resize(indent, ' ');
      out << wrapped(text + line.text, columns, indent) << '\n';
      margin.assign(step_columns + time_columns, ' ');
    };
    std::ranges::for_each(entry.events, print);
    std::ranges::for_each(entry.state, print);
  }
}

std::string_view rule_of(policy_kind policy) {
  switch (policy) {
    case policy_kind::static_batch:
      return "a batch starts when it is full, has waited long enough, or no more will come; "
             "prompts "
             "are padded to the longest, and nobody may join until the longest answer has ended.";
    case policy_kind::continuous:
      return "each step serves those who run, then lets waiting ones in while places, token budget "
             "and KV memory last; who ends makes room at once.";
    case policy_kind::prefill_first:
      return "as long as somebody can be let in, steps compute prompts only; those who run "
             "pause meanwhile.";
    case policy_kind::reserve:
      return "a request is let in only where memory for the longest answer it may give is free; "
             "nobody is ever preempted.";
  }
  return {};
}

void print_introduction(const simulation_options& base, const timeline_options& o,
                        std::ostream& out) {
  const engine_config& engine = base.engine;
  const auto say = [&](const std::string& text, std::size_t indent) {
    out << wrapped(text, std::min(o.columns, text_columns_max), indent) << '\n';
  };
  say("The same requests under each policy. A row is a request, in order of arrival; time runs to "
      "the right, on one scale for all pictures. The last line counts the requests that do useful "
      "work.",
      0);
  out << '\n';
  for (const policy_kind policy : o.policies) {
    say("  " + std::string(to_string(policy)) + ": " + std::string(rule_of(policy)), 4);
  }
  out << '\n';
  const bool has_static = std::ranges::count(o.policies, policy_kind::static_batch) > 0;
  say("At most " + std::to_string(engine.max_num_seqs) + " requests run at once and " +
          std::to_string(engine.max_num_batched_tokens.raw()) + " tokens are computed in a step" +
          (has_static ? " (a static batch is computed whole)" : "") +
          "; KV memory: " + std::to_string(engine.num_blocks.raw()) + " blocks of " +
          std::to_string(engine.block_size.raw()) + " tokens. Step times: " + base.cost->source() +
          ".",
      0);
  out << '\n';
}

void print_all_decisions(const std::vector<lesson_run>& runs, const std::vector<std::string>& names,
                         micros origin, std::size_t columns, std::ostream& out) {
  out << '\n'
      << wrapped(
             "The decisions. A step is one run of the model over a batch; between two steps the "
             "scheduler reads what arrived and what ended, and decides who takes part in the "
             "next. Requests are called by their row's number, times count from the first "
             "arrival.",
             columns, 0)
      << '\n';
  for (const lesson_run& r : runs) {
    out << '\n' << r.policy << '\n';
    print_decisions(r, names, origin, columns, out);
  }
}

}  // namespace

void print_timeline(const simulation_options& base, const timeline_options& options,
                    std::ostream& out) {
  refuse_unreadable(base, options);
  std::vector<lesson_run> runs;
  for (const policy_kind policy : options.policies) {
    runs.push_back(run_policy(base, options, policy));
  }
  const std::vector<std::string> names =
      names_of(*base.trace, runs.front().run.lives.size(), options.utf8);
  const time_window window = window_of(runs);
  const std::size_t text_columns = std::min(options.columns, text_columns_max);
  print_introduction(base, options, out);
  std::set<cell> used;
  print_pictures(runs, window, names, options, used, out);
  for (const std::string& line : legend(used, {options.utf8, options.colour})) {
    out << "  " << line << '\n';
  }
  if (options.decisions) print_all_decisions(runs, names, window.from, text_columns, out);
  std::vector<score> scores;
  for (const lesson_run& r : runs) scores.push_back(r.result);
  out << "\nWhat it came to\n";
  for (const std::string& line : table_of(scores)) out << line << '\n';
  for (std::size_t i = 1; i < scores.size(); ++i) {
    out << '\n' << wrapped(comparison(scores.front(), scores[i]), text_columns, 0) << '\n';
  }
}

}  // namespace octavo::sim
