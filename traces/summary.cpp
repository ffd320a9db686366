// Statistics of a trace; see summary.hpp.
#include "traces/summary.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

namespace octavo::traces {
namespace {

length_summary summarize_lengths(const trace& t, token_count request::*length) {
  std::vector<std::int32_t> sorted;
  sorted.reserve(t.requests.size());
  double sum = 0;
  for (const request& r : t.requests) {
    sorted.push_back((r.*length).raw());
    sum += (r.*length).raw();
  }
  if (sorted.empty()) return {};
  std::sort(sorted.begin(), sorted.end());
  const auto percentile = [&](std::size_t percent) {
    return sorted[(sorted.size() * percent + 99) / 100 - 1];
  };
  return {sum / static_cast<double>(sorted.size()),
          sorted.front(),
          percentile(50),
          percentile(90),
          percentile(99),
          sorted.back()};
}

void count_requests(const trace& t, trace_summary& s) {
  std::unordered_set<std::uint32_t> sessions;
  std::unordered_set<std::uint32_t> tenants;
  micros first = micros::max();
  micros last{0};
  for (const request& r : t.requests) {
    if (r.session != none) sessions.insert(r.session);
    if (r.tenant != none) tenants.insert(r.tenant);
    if (r.after != none) continue;
    ++s.timed_requests;
    first = std::min(first, r.arrival);
    last = std::max(last, r.arrival);
  }
  s.requests = t.requests.size();
  s.follow_ups = s.requests - s.timed_requests;
  s.sessions = sessions.size();
  s.tenants = tenants.size();
  if (s.timed_requests == 0 || last == first) return;
  s.duration_s = static_cast<double>((last - first).raw()) * 1e-6;
  s.rate_rps = static_cast<double>(s.timed_requests) / s.duration_s;
}

void count_prefix_hits(const trace& t, trace_summary& s) {
  std::unordered_set<std::uint64_t> seen;
  for (const request& r : t.requests) {
    const auto ids = t.prefix_of(r);
    const auto miss =
        std::find_if(ids.begin(), ids.end(), [&](std::uint64_t id) { return !seen.contains(id); });
    s.prefix_blocks += ids.size();
    s.prefix_blocks_hit += static_cast<std::size_t>(miss - ids.begin());
    seen.insert(miss, ids.end());
  }
  s.prefix_block = t.prefix_block.raw();
  if (s.prefix_blocks == 0) return;
  s.prefix_hit_rate =
      static_cast<double>(s.prefix_blocks_hit) / static_cast<double>(s.prefix_blocks);
}

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

std::string lengths_row(const char* name, const length_summary& l) {
  return format("%-10s %10.1f %8d %8d %8d %8d %8d\n", name, l.mean, l.min, l.p50, l.p90, l.p99,
                l.max);
}

nlohmann::ordered_json lengths_json(const length_summary& l) {
  return {{"mean", l.mean}, {"min", l.min}, {"p50", l.p50},
          {"p90", l.p90},   {"p99", l.p99}, {"max", l.max}};
}

}  // namespace

trace_summary summarize(const trace& t) {
  trace_summary s;
  s.format = t.format;
  s.notes = t.notes;
  count_requests(t, s);
  s.prompt = summarize_lengths(t, &request::prompt_tokens);
  s.output = summarize_lengths(t, &request::output_tokens);
  count_prefix_hits(t, s);
  return s;
}

std::string to_table(const trace_summary& s) {
  std::string text = "format     " + s.format + '\n';
  text += format("requests   %zu", s.requests);
  if (s.follow_ups > 0) text += format(", %zu of them after another has finished", s.follow_ups);
  text += format("\nduration   %.3f s\n", s.duration_s);
  text += s.rate_rps > 0 ? format("rate       %.3f requests/s", s.rate_rps)
                         : std::string("rate       all arrive at one moment");
  if (s.follow_ups > 0) text += ", without those";
  text += '\n';
  if (s.sessions > 0) text += format("sessions   %zu\n", s.sessions);
  if (s.tenants > 0) text += format("tenants    %zu\n", s.tenants);
  text += "\ntokens           mean      min      p50      p90      p99      max\n";
  text += lengths_row("prompt", s.prompt) + lengths_row("output", s.output);
  if (s.prefix_blocks > 0) {
    text += format(
        "\nprefix     %d tokens a block; an endless cache would hit %zu of %zu blocks, "
        "%.1f %%\n",
        s.prefix_block, s.prefix_blocks_hit, s.prefix_blocks, 100 * s.prefix_hit_rate);
  }
  for (const std::string& note : s.notes) text += "note       " + note + '\n';
  return text;
}

std::string to_json(const trace_summary& s) {
  const nlohmann::ordered_json json{{"format", s.format},
                                    {"requests", s.requests},
                                    {"timed_requests", s.timed_requests},
                                    {"follow_ups", s.follow_ups},
                                    {"sessions", s.sessions},
                                    {"tenants", s.tenants},
                                    {"duration_s", s.duration_s},
                                    {"rate_rps", s.rate_rps},
                                    {"prompt_tokens", lengths_json(s.prompt)},
                                    {"output_tokens", lengths_json(s.output)},
                                    {"prefix_block", s.prefix_block},
                                    {"prefix_blocks", s.prefix_blocks},
                                    {"prefix_blocks_hit", s.prefix_blocks_hit},
                                    {"prefix_hit_rate", s.prefix_hit_rate},
                                    {"notes", s.notes}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace octavo::traces
