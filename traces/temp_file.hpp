// For tests: a file with given contents that is removed at the end of its scope.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace octavo::traces {

class temp_file {
 public:
  explicit temp_file(std::string_view contents = {}, std::string_view ending = ".txt") {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() /
            ("octavo-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    path_ += ending;
    rewrite(contents);
  }
  ~temp_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  temp_file(const temp_file&) = delete;
  temp_file& operator=(const temp_file&) = delete;

  /// A new file under the same name: some file systems flush one that is cut and rewritten.
  void rewrite(std::string_view contents) const {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << contents;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// All bytes of a file.
[[nodiscard]] inline std::string contents_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace octavo::traces
