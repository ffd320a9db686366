// A sweep's rows: see sweep_report.hpp.
#include "sim/report/sweep_report.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/report/files.hpp"
#include "sim/report/text.hpp"

namespace octavo::sim {
namespace {

struct column {
  std::string title;
  std::function<std::string(const sweep_row&)> text;
};

std::string number(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string word_of(const sweep_row& row) {
  const evaluation& r = row.result;
  if (!r.run) return "infeasible";
  if (!r.summary.stable) return "unstable";
  return r.summary.meets_objectives ? "meets" : "misses";
}

std::string verdict_of(const sweep_row& row) {
  return word_of(row) + (row.pareto ? " *" : "");
}

// A latency, unless it would only tell the trace's length.
std::string latency(const sweep_row& row, double seconds) {
  return row.result.run && row.result.summary.stable ? format_seconds(seconds) : "-";
}

std::vector<column> columns_of(const sim_options& options, const std::vector<sweep_row>& rows) {
  std::vector<column> columns;
  if (!rows.empty()) {
    for (std::size_t i = 0; i < rows.front().what.values.size(); ++i) {
      columns.push_back({rows.front().what.values[i].first,
                         [i](const sweep_row& r) { return r.what.values[i].second; }});
    }
  }
  columns.push_back({"GPUs", [](const sweep_row& r) {
                       return r.result.run ? std::to_string(r.result.run->gpus) : "-";
                     }});
  if (options.find_capacity) {
    columns.push_back({"capacity req/s", [](const sweep_row& r) {
                         return number(r.result.capacity_is_bound ? ">%.2f" : "%.2f",
                                       r.result.capacity_rps);
                       }});
  }
  const auto add = [&](const char* title, auto of_summary) {
    columns.push_back({title, [of_summary](const sweep_row& r) {
                         return r.result.run ? of_summary(r) : std::string{"-"};
                       }});
  };
  add("req/s", [](const sweep_row& r) { return number("%.2f", r.result.summary.requests_per_s); });
  add("tok/s",
      [](const sweep_row& r) { return number("%.0f", r.result.summary.output_tokens_per_s); });
  add("TTFT p50", [](const sweep_row& r) { return latency(r, r.result.summary.ttft_s.p50); });
  add("TTFT p99", [](const sweep_row& r) { return latency(r, r.result.summary.ttft_s.p99); });
  add("TPOT p99", [](const sweep_row& r) { return latency(r, r.result.summary.tpot_s.p99); });
  add("KV max",
      [](const sweep_row& r) { return number("%.0f%%", r.result.summary.kv_used_max * 100); });
  add("USD/Mtok", [](const sweep_row& r) {
    const double usd = r.result.summary.usd_per_million_tokens;
    return usd > 0 ? number("%.2f", usd) : std::string{"-"};
  });
  columns.push_back({"verdict", verdict_of});
  return columns;
}

double price_of(const sweep_row& row) {
  const double usd = row.result.run->price_usd_per_hour;
  return usd > 0 ? usd : row.result.run->gpus;
}

// The cheapest that meets the objectives, of those the fastest.
const sweep_row* best_of(const sim_options& options, const std::vector<sweep_row>& rows) {
  const sweep_row* best = nullptr;
  for (const sweep_row& row : rows) {
    if (!row.result.run || !row.result.summary.meets_objectives) continue;
    if (best == nullptr) {
      best = &row;
      continue;
    }
    const auto key = [&](const sweep_row& r) {
      const double capacity = options.find_capacity ? -r.result.capacity_rps / price_of(r) : 0;
      return std::tuple{capacity, price_of(r), r.result.summary.ttft_s.p99};
    };
    if (key(row) < key(*best)) best = &row;
  }
  return best;
}

/// Below this share of the arrival rate, completions tell of the trace's length.
constexpr double short_trace_share = 0.8;

std::string capacity_sentence(const sweep_row& best) {
  const evaluation& r = best.result;
  std::string text = "Up to " + number("%.2f", r.capacity_rps) + " req/s (" +
                     number("%.2f", r.capacity_scale) + " x the trace's rate)";
  if (r.capacity_is_bound) text += ", where the search stops,";
  text += " with " + label_of(best.what) + ". ";
  // A short trace has ended before its requests are done, so fewer complete in a second.
  const bool is_short = r.summary.requests_per_s < short_trace_share * r.capacity_rps;
  return text + (is_short ? "The trace is too short for as many to complete in a second. " : "") +
         "At that rate: ";
}

void print_answer(const sim_options& options, const std::vector<sweep_row>& rows,
                  std::ostream& out) {
  const sweep_row* best = best_of(options, rows);
  if (best == nullptr) {
    out << (rows.size() == 1 ? "No: " : "None of the configurations will do: ")
        << (rows.front().result.run
                ? answer_sentence(*rows.front().result.run, rows.front().result.summary)
                : rows.front().result.problem)
        << '\n';
    return;
  }
  if (options.find_capacity) {
    out << capacity_sentence(*best);
  } else if (options.find_min_gpus && rows.size() == 1) {
    out << "The fewest replicas that will do at tensor-parallel-size " +
               std::to_string(options.tensor_parallel_size) + ": ";
  } else if (rows.size() > 1) {
    out << "Cheapest that "
        << (best->result.run->objectives.any() ? "meets the objectives" : "keeps up") << ": "
        << label_of(best->what) << ". ";
  }
  out << answer_sentence(*best->result.run, best->result.summary) << '\n';
}

void print_table(const std::vector<column>& columns, const std::vector<sweep_row>& rows,
                 std::ostream& out) {
  std::vector<std::vector<std::string>> cells(rows.size() + 1);
  std::vector<std::size_t> widths;
  for (const column& c : columns) {
    cells[0].push_back(c.title);
    std::size_t width = c.title.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      cells[i + 1].push_back(c.text(rows[i]));
      width = std::max(width, cells[i + 1].back().size());
    }
    widths.push_back(width);
  }
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out << (i == 0 ? "  " : "  ") << std::string(widths[i] - line[i].size(), ' ') << line[i];
    }
    out << '\n';
  }
}

// What the reader should know of any row: each statement once.
void print_common(const std::vector<sweep_row>& rows, std::ostream& out) {
  std::set<std::string> sources;
  std::set<std::string> notes;
  for (const sweep_row& row : rows) {
    if (!row.result.run) continue;
    sources.insert(row.result.run->simulation.cost->source());
    notes.insert(row.result.run->notes.begin(), row.result.run->notes.end());
  }
  for (const std::string& source : sources) out << "  priced by " << source << '\n';
  for (const std::string& note : notes) out << "  note      " << note << '\n';
}

}  // namespace

void print_sweep(const sim_options& options, const std::vector<sweep_row>& rows, double wall_s,
                 std::ostream& out) {
  if (rows.empty()) {
    out << "This shard holds none of the configurations.\n";
    return;
  }
  print_answer(options, rows, out);
  out << '\n';
  print_table(columns_of(options, rows), rows, out);
  int runs = 0;
  for (const sweep_row& row : rows) runs += row.result.runs;
  out << "\n  * nobody else is both cheaper per token and faster to the first token\n";
  for (const sweep_row& row : rows) {
    if (!row.result.run) out << "  " << label_of(row.what) << ": " << row.result.problem << '\n';
  }
  print_common(rows, out);
  out << "  " << runs << " simulations in " << number("%.1f", wall_s) << " s\n";
}

namespace {

// Numbers for other programs: seconds and fractions, nothing formatted.
void write_sweep_csv(const std::vector<sweep_row>& rows, std::ostream& file) {
  file << "configuration";
  for (const auto& [flag, value] : rows.front().what.values) file << ',' << flag;
  file << ",gpus,capacity_rps,requests_per_s,output_tokens_per_s,ttft_p50_s,ttft_p99_s,"
          "tpot_p99_s,kv_used_max,usd_per_million_output_tokens,verdict,pareto\n";
  for (const sweep_row& row : rows) {
    const run_summary& s = row.result.summary;
    file << row.what.number;
    for (const auto& [flag, value] : row.what.values) file << ',' << value;
    file << ',' << (row.result.run ? row.result.run->gpus : 0) << ',' << row.result.capacity_rps
         << ',' << s.requests_per_s << ',' << s.output_tokens_per_s << ',' << s.ttft_s.p50 << ','
         << s.ttft_s.p99 << ',' << s.tpot_s.p99 << ',' << s.kv_used_max << ','
         << s.usd_per_million_tokens << ',' << word_of(row) << ',' << (row.pareto ? 1 : 0) << '\n';
  }
}

}  // namespace

void write_sweep_files(const sim_options& options, const std::vector<sweep_row>& rows) {
  if (!options.out_csv.empty() && !rows.empty()) {
    write_file(options.out_csv, [&](std::ostream& file) { write_sweep_csv(rows, file); });
  }
  if (options.out_json.empty()) return;
  write_file(options.out_json, [&](std::ostream& file) {
    auto all = nlohmann::ordered_json::array();
    for (const sweep_row& row : rows) {
      nlohmann::ordered_json one;
      one["configuration"] = row.what.number;
      for (const auto& [flag, value] : row.what.values) one["vary"][flag] = value;
      one["feasible"] = row.result.run.has_value();
      one["problem"] = row.result.problem;
      one["pareto"] = row.pareto;
      if (options.find_capacity) {
        one["capacity"] = {{"rate_scale", row.result.capacity_scale},
                           {"requests_per_s", row.result.capacity_rps}};
      }
      if (row.result.run) one["report"] = to_json(*row.result.run, row.result.summary, 0);
      all.push_back(std::move(one));
    }
    file << all.dump(2) << '\n';
  });
}

}  // namespace octavo::sim
