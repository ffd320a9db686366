// A text file read line by line, plain or gzip, in memory bounded by its longest
// line. Lines come with the padding that simdjson wants behind them, so that a
// JSON line is parsed where it lies.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formats/field.hpp"

namespace octavo::traces {

class text_source {
 public:
  /// Opens `file`. Throws input_error when that fails.
  explicit text_source(const std::filesystem::path& file);

  /// The next line that is not blank, without its line end; none at the end of
  /// the file. Valid until the next call. Throws input_error on a read error.
  std::optional<std::string_view> next_line();

  /// The line that next_line() would give.
  std::optional<std::string_view> peek_line();

  /// Everything not yet read, the peeked line included; its first line is `at()`'s + 1.
  std::string_view rest();

  /// The file and the line that next_line() gave last.
  [[nodiscard]] place at() const { return {name_, line_}; }

 private:
  struct file_closer {
    void operator()(void* file) const;
  };

  /// Bytes of the line at `begin_`, its end not included; none when the file is used up.
  std::optional<std::size_t> line_bytes();
  void fill();

  std::string name_;
  std::unique_ptr<void, file_closer> file_;
  std::vector<char> buffer_;  // [0, begin_) used, [begin_, end_) unread, then free + padding
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t line_ = 0;
  bool at_end_ = false;
};

}  // namespace octavo::traces
