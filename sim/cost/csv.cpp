// Reads measured tables.
#include "sim/cost/csv.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>

#include "core/error.hpp"

namespace octavo::sim {
namespace {

/// The whole file; zlib reads plain files as they are.
std::string read_all(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file{gzopen(path.c_str(), "rb"), gzclose};
  if (!file) throw input_error(path + ": cannot be opened");
  std::string content;
  std::array<char, 65536> buffer{};
  for (;;) {
    const int count = gzread(file.get(), buffer.data(), buffer.size());
    if (count < 0) throw input_error(path + ": cannot be read (damaged gzip data?)");
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

csv_table::csv_table(const std::string& path) : path_(path), content_(read_all(path)) {
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < content_.size();) {
    std::size_t end = std::min(content_.find('\n', begin), content_.size());
    const std::size_t next = end + 1;
    if (end > begin && content_[end - 1] == '\r') --end;
    ++line;
    if (end > begin) {
      const std::size_t before = cells_.size();
      split_line(begin, end);
      if (header_.empty()) {
        header_.swap(cells_);
      } else if (cells_.size() - before != header_.size()) {
        throw input_error(path_ + ":" + std::to_string(line) + ": " +
                          std::to_string(cells_.size() - before) + " cells where the header has " +
                          std::to_string(header_.size()));
      } else {
        line_starts_.push_back(line);
      }
    }
    begin = next;
  }
  if (line_starts_.empty()) throw input_error(path_ + ": holds no rows");
}

void csv_table::split_line(std::size_t begin, std::size_t end) {
  const std::string_view all{content_};
  bool quoted = false;
  std::size_t cell = begin;
  for (std::size_t i = begin; i <= end; ++i) {
    if (i < end && content_[i] == '"') quoted = !quoted;
    if (i == end || (content_[i] == ',' && !quoted)) {
      cells_.push_back(all.substr(cell, i - cell));
      cell = i + 1;
    }
  }
}

bool csv_table::has(std::string_view column) const {
  return std::find(header_.begin(), header_.end(), column) != header_.end();
}

std::size_t csv_table::column(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found != header_.end()) return static_cast<std::size_t>(found - header_.begin());
  std::string known;
  for (const std::string_view known_name : header_) known.append(" ").append(known_name);
  throw input_error(path_ + ": no column \"" + std::string{name} + "\"; it has" + known);
}

std::string_view csv_table::text(std::size_t row, std::size_t column) const {
  return cells_[row * header_.size() + column];
}

double csv_table::number(std::size_t row, std::size_t column, double empty) const {
  const std::string_view cell = text(row, column);
  if (cell.empty()) return empty;
  double value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || rest != cell.data() + cell.size() || !std::isfinite(value)) {
    throw input_error(path_ + ":" + std::to_string(line_starts_[row]) + ": column \"" +
                      std::string{header_[column]} + "\" holds \"" + std::string{cell} +
                      "\"; a number is needed");
  }
  return value;
}

}  // namespace octavo::sim
