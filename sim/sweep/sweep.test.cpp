// Grids: order, shards, Pareto sets by hand, and equal bytes however many run
// at once.
#include "sim/sweep/sweep.hpp"

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sim_runs.hpp"

using namespace octavo;
using Catch::Matchers::ContainsSubstring;
using sim::expand_grid;
using sim::sim_options;
using sim::sweep_row;
using test::run_sim;
using test::sim_result;
using test::operator+;

namespace {

using arguments = std::vector<std::string>;

std::vector<std::string> labels(const sim_options& options) {
  std::vector<std::string> all;
  for (const auto& one : expand_grid(options)) all.push_back(label_of(one));
  return all;
}

sweep_row row_with(double usd, double p99_s, bool meets = true) {
  sweep_row row;
  row.result.run.emplace();
  row.result.summary.usd_per_million_tokens = usd;
  row.result.summary.ttft_s.p99 = p99_s;
  row.result.summary.meets_objectives = meets;
  return row;
}

// Forty requests, ten a second, of thirty tokens and a few more.
const traces::temp_file& busy_trace() {
  static const traces::temp_file file{
      [] {
        std::string text = "{\"format\":\"octavo.trace/1\"}\n";
        for (int i = 0; i < 40; ++i) {
          text += "{\"id\":" + std::to_string(i) + ",\"arrival_s\":" + std::to_string(i * 0.1) +
                  ",\"prompt_tokens\":30,\"output_tokens\":" + std::to_string(2 + i % 5) + "}\n";
        }
        return text;
      }(),
      ".jsonl"};
  return file;
}

arguments swept() {
  return {"--trace",
          busy_trace().path().string(),
          "--step-time",
          "50ms",
          "--num-gpu-blocks-override",
          "100",
          "--max-num-seqs",
          "8"};
}

nlohmann::json rows_of(const arguments& flags) {
  return test::json_of_sim(swept() + flags);
}

std::string bytes_of(const arguments& flags) {
  const traces::temp_file json{"", ".json"};
  const traces::temp_file csv{"", ".csv"};
  REQUIRE(
      run_sim(swept() + flags +
              arguments{"-q", "--out-json", json.path().string(), "--out-csv", csv.path().string()})
          .code == 0);
  return traces::contents_of(json.path()) + traces::contents_of(csv.path());
}

}  // namespace

TEST_CASE("the grid varies the last flag fastest") {
  sim_options o;
  o.vary = {"a=1,2", "--b=x,y,z"};
  CHECK(labels(o) ==
        arguments{"a 1, b x", "a 1, b y", "a 1, b z", "a 2, b x", "a 2, b y", "a 2, b z"});
  CHECK(labels({}) == arguments{"the configuration"});
}

TEST_CASE("shards part the grid: every row in exactly one, with its number in the whole") {
  sim_options whole;
  whole.vary = {"a=1,2,3", "b=1,2,3,4"};
  const auto all = labels(whole);
  for (const int n : {1, 2, 5, 12, 20}) {
    std::set<std::size_t> seen;
    for (int k = 1; k <= n; ++k) {
      sim_options part = whole;
      part.shard = std::to_string(k) + "/" + std::to_string(n);
      for (const auto& one : expand_grid(part)) {
        CHECK(seen.insert(one.number).second);
        CHECK(label_of(one) == all[one.number]);
      }
    }
    CHECK(seen.size() == all.size());
  }
}

TEST_CASE("malformed grids and shards are refused with their form") {
  const auto refused = [](const std::string& vary, const std::string& shard) {
    sim_options o;
    if (!vary.empty()) o.vary = {vary};
    o.shard = shard;
    return o;
  };
  for (const auto* vary : {"policy", "policy=", "=1", "a=1,,2", "a=1,"}) {
    INFO(vary);
    CHECK_THROWS_WITH(expand_grid(refused(vary, "")), ContainsSubstring("--vary"));
  }
  for (const auto* shard : {"1", "0/2", "3/2", "1/2/3", "a/b", "-1/2", "1/", "/2", "1/0"}) {
    INFO(shard);
    CHECK_THROWS_WITH(expand_grid(refused("", shard)), ContainsSubstring("--shard"));
  }
  sim_options huge;
  const std::string many = "1" + [] {
    std::string s;
    for (int i = 0; i < 99; ++i) s += ",1";
    return s;
  }();
  huge.vary = {"a=" + many, "b=" + many, "c=" + many};
  CHECK_THROWS_WITH(expand_grid(huge), ContainsSubstring("100000"));
}

TEST_CASE("the Pareto set: nobody is both cheaper and faster") {
  std::vector<sweep_row> rows{row_with(1, 9),             // cheapest
                              row_with(2, 5),             // between
                              row_with(3, 5),             // as fast as the one before, and dearer
                              row_with(4, 6),             // beaten by both
                              row_with(9, 1),             // fastest
                              row_with(9, 2),             // as dear, and slower
                              row_with(0.5, 0.5, false),  // misses the objectives: no rival
                              row_with(2, 5)};            // equal to another that is in the set
  rows.push_back({});                                     // infeasible
  mark_pareto(rows);
  std::vector<bool> marked;
  for (const sweep_row& row : rows) marked.push_back(row.pareto);
  CHECK(marked == std::vector<bool>{true, true, false, false, true, false, false, true, false});
}

TEST_CASE("one combination's options are the line as typed, with the varied flags behind") {
  const sim_options base =
      sim::parse_sim_options({"--policy", "static", "--max-num-seqs", "7"}).options;
  const sim_options one = options_of(base, {0, {{"policy", "reserve"}, {"rate-scale", "2"}}});
  CHECK(one.policy == "reserve");
  CHECK(one.rate_scale == 2);
  CHECK(one.max_num_seqs == 7);
}

TEST_CASE("rows and bytes do not depend on how many run at once") {
  const arguments grid{"--vary", "policy=continuous,static,reserve", "--vary", "rate-scale=1,2,4"};
  const std::string alone = bytes_of(grid + arguments{"--jobs", "1"});
  CHECK(bytes_of(grid + arguments{"--jobs", "4"}) == alone);
  CHECK(bytes_of(grid + arguments{"--jobs", "4"}) == alone);
}

TEST_CASE("a row is the run that its flags ask for") {
  const auto rows = rows_of({"--vary", "policy=continuous,static"});
  auto row = rows[1]["report"];
  auto alone = test::json_of_sim(swept() + arguments{"--policy", "static"});
  row.erase("wall_s");
  alone.erase("wall_s");
  CHECK(row == alone);
}

TEST_CASE("shards' rows together are the whole sweep's, but for the Pareto marks") {
  const arguments grid{"--vary", "max-num-seqs=2,4,8", "--vary", "policy=continuous,reserve"};
  const auto whole = rows_of(grid);
  for (const auto* shard : {"1/2", "2/2"}) {
    for (auto row : rows_of(grid + arguments{"--shard", shard})) {
      auto same = whole[row["configuration"].get<std::size_t>()];
      row.erase("pareto");
      same.erase("pareto");
      CHECK(row == same);
    }
  }
}

TEST_CASE("a bad key or value in one cell is refused before anything runs") {
  for (const auto* vary : {"policy=continuous,greedy", "max-num-seqs=8,-1", "nonsense=1",
                           "rate-scale=1,nan", "trace=/no/such/file"}) {
    const sim_result run = run_sim(swept() + arguments{"--vary", vary, "--vary", "seed=1,2"});
    INFO(vary << ": " << run.err);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, ContainsSubstring("--vary"));
  }
}

TEST_CASE("infeasible rows are listed with their arithmetic and not ranked") {
  const arguments sweep{"--trace", busy_trace().path().string(),
                        "--model", "llama-3.1-70b",
                        "--gpu",   "h100",
                        "--vary",  "tp=1,2,3,4"};
  const sim_result run = run_sim(sweep);
  CHECK(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("infeasible") &&
                          ContainsSubstring("tp 1: no room for the KV cache") &&
                          ContainsSubstring("tp 3: "));
  const auto rows = test::json_of_sim(sweep);
  for (const std::size_t i : {0, 2}) {
    CHECK(rows[i]["feasible"] == false);
    CHECK(rows[i]["pareto"] == false);
    CHECK_FALSE(rows[i]["problem"].get<std::string>().empty());
    CHECK_FALSE(rows[i].contains("report"));
  }
  CHECK(rows[3]["feasible"] == true);
}

TEST_CASE("a shard without rows, and a grid without a feasible row, say so and do not crash") {
  const sim_result none =
      run_sim(swept() + arguments{"--vary", "max-num-seqs=1,2", "--shard", "3/3"});
  CHECK(none.code == 0);
  CHECK_THAT(none.out, ContainsSubstring("none of the configurations"));
  const sim_result stuck = run_sim({"--trace", busy_trace().path().string(), "--model",
                                    "llama-3.1-70b", "--gpu", "h100", "--vary", "tp=1,3"});
  CHECK(stuck.code == 3);
  CHECK_THAT(stuck.out, ContainsSubstring("None of the configurations"));
}
