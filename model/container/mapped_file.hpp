// A whole file, mapped read-only: weights are used where the page cache holds
// them and are never copied to be parsed.
//
//   mapped_file file("model.gguf");
//   file.will_need(0, file.bytes().size());   // read ahead
//   parse(file.bytes());
//   file.done_with(offset, length);           // repacked: these pages may go
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace octavo::model {

/// Owns one read-only mapping. Movable; views into it live as long as it does.
class mapped_file {
 public:
  /// Maps `path`. Throws input_error naming the file where it cannot be opened,
  /// is no regular file, or is empty.
  explicit mapped_file(std::string path);
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Hints that bytes [offset, offset + length) are wanted soon. Clamped.
  void will_need(std::size_t offset, std::size_t length) const;
  /// Hints that the whole pages in [offset, offset + length) are not wanted any
  /// more; they stop counting as resident and are read again if touched. Clamped.
  void done_with(std::size_t offset, std::size_t length) const;

 private:
  void unmap() noexcept;

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace octavo::model
