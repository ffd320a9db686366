// Splits rows into cells; see csv.hpp.
#include "traces/formats/csv.hpp"

#include <algorithm>

namespace octavo::traces {
namespace {

/// Cuts `line` at commas outside of double quotes; the quotes around a cell go.
void split(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  bool quotes = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quotes = !quotes;
    if (i < line.size() && (line[i] != ',' || quotes)) continue;
    auto cell = trimmed(line.substr(begin, i - begin));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
      cell = cell.substr(1, cell.size() - 2);
    }
    cells.push_back(cell);
    begin = i + 1;
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace

csv_table::csv_table(text_source& source) : source_(source) {
  if (const auto line = source.next_line()) split(*line, cells_);
  for (const auto cell : cells_) header_.push_back(lower(cell));
}

std::optional<csv_table::column> csv_table::find(
    std::initializer_list<std::string_view> names) const {
  std::optional<column> result;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (std::find(names.begin(), names.end(), header_[i]) == names.end()) continue;
    if (result) {
      fail(source_.at(), "columns \"" + result->name + "\" and \"" + header_[i] +
                             "\" mean the same; expected one of them");
    }
    result = column{i, header_[i]};
  }
  return result;
}

bool csv_table::next() {
  const auto line = source_.next_line();
  if (!line) return false;
  split(*line, cells_);
  if (cells_.size() != header_.size()) {
    fail(source_.at(), "has " + std::to_string(cells_.size()) + " cells; the header has " +
                           std::to_string(header_.size()));
  }
  return true;
}

}  // namespace octavo::traces
