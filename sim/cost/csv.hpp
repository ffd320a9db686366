// Small reader of measured tables: comma-separated values with a header line,
// plain or gzip. Columns are found by name; every complaint names file, line
// and column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::sim {

class csv_table {
 public:
  /// Throws input_error where the file cannot be read, is empty, or a line has
  /// another number of cells than the header.
  explicit csv_table(const std::string& path);

  [[nodiscard]] std::size_t rows() const { return line_starts_.size(); }
  [[nodiscard]] bool has(std::string_view column) const;
  /// The position of a column. Throws input_error listing the columns.
  [[nodiscard]] std::size_t column(std::string_view name) const;
  [[nodiscard]] std::string_view text(std::size_t row, std::size_t column) const;
  /// A finite number, or `empty` where the cell is empty. Throws input_error.
  [[nodiscard]] double number(std::size_t row, std::size_t column, double empty = 0) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void split_line(std::size_t begin, std::size_t end);

  std::string path_;
  std::string content_;
  std::vector<std::string_view> header_;
  /// Cells of all lines, row after row.
  std::vector<std::string_view> cells_;
  /// Line number of each row, for messages.
  std::vector<std::size_t> line_starts_;
};

}  // namespace octavo::sim
