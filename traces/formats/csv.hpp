// Comma-separated tables with a header line. Columns are found by name, in any
// order and any case; a row of another width than the header is an error.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formats/text_source.hpp"

namespace octavo::traces {

class csv_table {
 public:
  struct column {
    std::size_t index;
    std::string name;
  };

  /// Reads the header from `source`, which must outlive the table.
  explicit csv_table(text_source& source);

  /// The column that has one of `names` (lower case). Throws input_error if several have.
  [[nodiscard]] std::optional<column> find(std::initializer_list<std::string_view> names) const;

  /// Steps to the next row; false at the end.
  bool next();
  /// The current row's text in a column.
  [[nodiscard]] std::string_view cell(const column& c) const { return cells_[c.index]; }

 private:
  text_source& source_;
  std::vector<std::string> header_;
  std::vector<std::string_view> cells_;
};

}  // namespace octavo::traces
