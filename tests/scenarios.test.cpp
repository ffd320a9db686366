// The scenarios of tests/scenarios: a trace, the flags of `sim`, and what must
// come out. Their README says how to read and write one.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/sim_runs.hpp"

using namespace octavo;
using test::run_sim;
using test::sim_result;

namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

const fs::path scenarios{OCTAVO_SOURCE_DIR "/tests/scenarios"};

words split(const std::string& text, char at) {
  words parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  if (text.ends_with(at)) parts.emplace_back();
  return parts;
}

words words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// What a scenario's run left behind.
struct results {
  words report;
  nlohmann::json json;
  std::map<std::string, std::map<std::string, std::string>> requests;
};

results run_scenario(const fs::path& folder) {
  const traces::temp_file json{"", ".json"};
  const traces::temp_file csv{"", ".csv"};
  words arguments = words_of(traces::contents_of(folder / "args"));
  arguments.insert(arguments.end(), {"--trace", (folder / "trace.jsonl").string(), "--out-json",
                                     json.path().string(), "--out-csv", csv.path().string()});
  const sim_result run = run_sim(arguments);
  INFO(run.err);
  REQUIRE(run.code == 0);
  results found{split(run.out, '\n'), nlohmann::json::parse(traces::contents_of(json.path())), {}};
  const words lines = split(traces::contents_of(csv.path()), '\n');
  const words columns = split(lines.front(), ',');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const words cells = split(lines[i], ',');
    for (std::size_t c = 0; c < cells.size(); ++c) {
      found.requests[cells.front()][columns.at(c)] = cells[c];
    }
  }
  return found;
}

bool is_operator(const std::string& word) {
  return word == "=" || word == "<" || word == ">";
}

bool holds(const std::string& found, const std::string& comparison, const std::string& wanted) {
  char* rest = nullptr;
  const double number = std::strtod(wanted.c_str(), &rest);
  if (*rest != '\0') return comparison == "=" && found == wanted;
  const double value = std::strtod(found.c_str(), &rest);
  if (found.empty() || *rest != '\0') return false;
  if (comparison == "<") return value < number;
  if (comparison == ">") return value > number;
  return std::abs(value - number) <= 1e-6 * std::max(1.0, std::abs(number));
}

std::string json_text(const nlohmann::json& report, const std::string& path) {
  const nlohmann::json* at = &report;
  for (const std::string& key : split(path, '.')) {
    if (!at->contains(key)) return "absent";
    at = &at->at(key);
  }
  return at->is_string() ? at->get<std::string>() : at->dump();
}

std::string request_text(const results& found, const std::string& id, const std::string& column) {
  const auto row = found.requests.find(id);
  if (row == found.requests.end()) return "absent";
  const auto cell = row->second.find(column);
  return cell == row->second.end() ? "absent" : cell->second;
}

// Checks one line; text is sought from report line `from` on, which moves.
void check_line(const std::string& line, const results& found, std::size_t& from) {
  const words parts = words_of(line);
  if (parts.empty() || parts.front().starts_with('#')) return;
  if (parts.size() == 5 && parts[0] == "request" && is_operator(parts[3])) {
    const std::string text = request_text(found, parts[1], parts[2]);
    INFO(line << ", and it is " << text);
    CHECK(holds(text, parts[3], parts[4]));
  } else if (parts.size() == 3 && is_operator(parts[1])) {
    const std::string text = json_text(found.json, parts[0]);
    INFO(line << ", and it is " << text);
    CHECK(holds(text, parts[1], parts[2]));
  } else {
    while (from < found.report.size() && found.report[from].find(line) == std::string::npos) ++from;
    INFO("the report has, in this place, no line with: " << line);
    CHECK(from < found.report.size());
  }
}

}  // namespace

TEST_CASE("every scenario comes out as it says") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(scenarios)) {
    if (!entry.is_directory()) continue;
    ++count;
    INFO("scenario " << entry.path().filename().string());
    const results found = run_scenario(entry.path());
    std::size_t from = 0;
    int expectations = 0;
    for (const std::string& line : split(traces::contents_of(entry.path() / "expect"), '\n')) {
      check_line(line, found, from);
      if (!line.empty() && !line.starts_with('#')) ++expectations;
    }
    CHECK(expectations > 0);
  }
  CHECK(count >= 12);
}

TEST_CASE("a scenario's comparisons can fail") {
  CHECK(holds("0.3000001", "=", "0.3"));
  CHECK_FALSE(holds("0.301", "=", "0.3"));
  CHECK_FALSE(holds("2", "<", "2"));
  CHECK(holds("1.5", "<", "2"));
  CHECK_FALSE(holds("absent", ">", "0"));
  CHECK_FALSE(holds("", "=", "0"));
  CHECK(holds("finished{eos}", "=", "finished{eos}"));
  CHECK_FALSE(holds("finished{eos}", "=", "finished{stop}"));
}
