// Grids of configurations: see sweep.hpp.
#include "sim/sweep/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "actors/wall_clock.hpp"
#include "core/error.hpp"
#include "sim/cli/progress.hpp"
#include "sim/report/sweep_report.hpp"
#include "traces/reader.hpp"

namespace octavo::sim {
namespace {

constexpr std::size_t largest_grid = 100'000;

/// Flags that say what to do with a run, not how it runs.
constexpr std::string_view not_to_vary[] = {
    "help",          "jobs",      "shard",       "vary",         "seed",
    "quiet",         "out-json",  "out-csv",     "decision-log", "chrome-trace",
    "timeline",      "explain",   "replay",      "verify",       "find-capacity",
    "find-min-gpus", "list-gpus", "list-models", "kv-table",     "no-decision-log"};

using axis = std::pair<std::string, std::vector<std::string>>;

axis parse_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  axis a;
  a.first = text.substr(0, equals);
  while (a.first.starts_with('-')) a.first.erase(0, 1);
  if (equals == std::string::npos || a.first.empty() || equals + 1 == text.size()) {
    throw input_error("--vary: '" + text + "' is not FLAG=V1,V2,…, as rate-scale=1,2,4");
  }
  if (std::ranges::find(not_to_vary, a.first) != std::end(not_to_vary)) {
    throw input_error("--vary: '" + a.first + "' does not change what is simulated");
  }
  std::size_t at = equals + 1;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma == at) throw input_error("--vary: '" + text + "' has an empty value");
    a.second.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return a;
}

// "k/n": which of the grid's rows are ours.
std::pair<std::size_t, std::size_t> parse_shard(const std::string& text) {
  if (text.empty()) return {1, 1};
  std::size_t k = 0;
  std::size_t n = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, k);
  bool good = first.ec == std::errc{} && first.ptr != end && *first.ptr == '/';
  if (good) {
    const auto second = std::from_chars(first.ptr + 1, end, n);
    good = second.ec == std::errc{} && second.ptr == end && k >= 1 && k <= n;
  }
  if (!good) throw input_error("--shard: '" + text + "' is not k/n with 1 <= k <= n, as 2/8");
  return {k, n};
}

// Runs rows on `jobs` threads; the first bad input ends all.
class row_runner {
 public:
  row_runner(const sim_options& base, std::vector<sweep_row>& rows, progress_callback progress)
      : base_(base), rows_(rows), progress_(std::move(progress)) {}

  /// Resolves each row, so that a bad value anywhere is known before a long run.
  void check() {
    for (const sweep_row& row : rows_) {
      try {
        const sim_options options = options_of(base_, row.what);
        static_cast<void>(prepare_run(options, trace_of(options)));
      } catch (const infeasible_error&) {
        // An answer, which the table will give.
      } catch (const input_error& problem) {
        if (row.what.values.empty()) throw;
        throw input_error("--vary: " + label_of(row.what) + ": " + problem.what());
      }
    }
  }

  void run(std::size_t jobs) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(jobs, rows_.size()); ++i) {
      threads.emplace_back([this] { work(); });
    }
    threads.clear();
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  void work() {
    for (std::size_t at = next_++; at < rows_.size() && !failed_; at = next_++) {
      try {
        const sim_options options = options_of(base_, rows_[at].what);
        rows_[at].result = evaluate(options, trace_of(options));
      } catch (...) {
        const std::lock_guard hold{mutex_};
        if (!problem_) problem_ = std::current_exception();
        failed_ = true;
      }
      const std::lock_guard hold{mutex_};
      if (progress_) progress_(++done_, rows_.size());
    }
  }

  // Rows share a trace unless the grid varies it.
  std::shared_ptr<const traces::trace> trace_of(const sim_options& options) {
    const std::lock_guard hold{mutex_};
    auto& trace = traces_[options.trace];
    if (trace == nullptr) {
      trace = std::make_shared<traces::trace>(traces::read_trace(options.trace));
    }
    return trace;
  }

  const sim_options& base_;
  std::vector<sweep_row>& rows_;
  progress_callback progress_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const traces::trace>> traces_;
  std::exception_ptr problem_;
  std::uint64_t done_ = 0;
};

bool comparable(const sweep_row& row) {
  return row.result.run.has_value() && row.result.summary.meets_objectives;
}

// Output tokens per second and GPU: the inverse of cost where prices are equal.
double cost_of(const sweep_row& row) {
  const run_summary& s = row.result.summary;
  if (s.usd_per_million_tokens > 0) return s.usd_per_million_tokens;
  const int gpus = std::max(1, row.result.run->gpus);
  return s.output_tokens_per_s > 0 ? gpus / s.output_tokens_per_s : 1e300;
}

}  // namespace

std::string label_of(const variation& what) {
  std::string text;
  for (const auto& [flag, value] : what.values) {
    text += (text.empty() ? "" : ", ") + flag + " " + value;
  }
  return text.empty() ? "the configuration" : text;
}

std::vector<variation> expand_grid(const sim_options& options) {
  std::vector<variation> grid(1);
  for (const std::string& text : options.vary) {
    const axis a = parse_axis(text);
    for (const auto& [flag, value] : grid.front().values) {
      if (flag == a.first) throw input_error("--vary: '" + flag + "' is given twice");
    }
    if (a.second.size() > largest_grid / grid.size()) {
      throw input_error("--vary: the grid has more than 100000 configurations");
    }
    std::vector<variation> wider;
    for (const variation& one : grid) {
      for (const std::string& value : a.second) {
        wider.push_back(one);
        wider.back().values.emplace_back(a.first, value);
      }
    }
    grid = std::move(wider);
  }
  const auto [k, n] = parse_shard(options.shard);
  std::vector<variation> ours;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    grid[i].number = i;
    if (i % n == k - 1) ours.push_back(grid[i]);
  }
  return ours;
}

sim_options options_of(const sim_options& base, const variation& what) {
  std::vector<std::string> arguments = base.arguments;
  for (const auto& [flag, value] : what.values) arguments.push_back("--" + flag + "=" + value);
  return parse_sim_options(arguments).options;
}

void mark_pareto(std::vector<sweep_row>& rows) {
  for (sweep_row& row : rows) {
    if (!comparable(row)) continue;
    row.pareto = std::ranges::none_of(rows, [&](const sweep_row& other) {
      if (!comparable(other)) return false;
      const double cheaper = cost_of(other) - cost_of(row);
      const double faster = other.result.summary.ttft_s.p99 - row.result.summary.ttft_s.p99;
      return cheaper <= 0 && faster <= 0 && (cheaper < 0 || faster < 0);
    });
  }
}

int run_sweep(const sim_options& options, std::ostream& out, std::ostream& err) {
  std::vector<sweep_row> rows;
  for (variation& what : expand_grid(options)) rows.push_back({std::move(what), {}, false});
  const double start = actors::wall_seconds();
  const std::size_t jobs = options.jobs > 0 ? static_cast<std::size_t>(options.jobs)
                                            : std::max(1U, std::thread::hardware_concurrency());
  row_runner runner{options, rows, options.quiet ? progress_callback{} : make_progress_bar(err)};
  runner.check();
  runner.run(jobs);
  mark_pareto(rows);
  if (!options.quiet) {
    clear_progress_bar(err);
    print_sweep(options, rows, actors::wall_seconds() - start, out);
  }
  write_sweep_files(options, rows);
  const bool searched = options.find_capacity || options.find_min_gpus;
  const bool none = std::ranges::none_of(rows, [&](const sweep_row& r) {
    return searched ? comparable(r) : r.result.run.has_value();
  });
  return none && !rows.empty() ? 3 : 0;
}

}  // namespace octavo::sim
