// POSIX side of mapped_file.
#include "model/container/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace octavo::model {
namespace {

/// Closes a descriptor at the end of the scope: a mapping outlives it. Opening
/// does not block, so that a pipe is refused rather than waited for.
class descriptor {
 public:
  explicit descriptor(const std::string& path)
      : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int value() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw input_error(path + ": " + why);
}

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

mapped_file::mapped_file(std::string path) : path_(std::move(path)) {
  const descriptor file(path_);
  if (file.value() < 0) fail(path_, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status {};
  if (::fstat(file.value(), &status) != 0) fail(path_, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(path_, "is not a regular file");
  if (status.st_size == 0) fail(path_, "is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (address == MAP_FAILED) {
    fail(path_, std::string("cannot be mapped: ") + std::strerror(errno));
  }
  data_ = static_cast<const std::byte*>(address);
  size_ = size;
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

mapped_file::~mapped_file() {
  unmap();
}

void mapped_file::unmap() noexcept {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void mapped_file::will_need(std::size_t offset, std::size_t length) const {
  if (offset >= size_) return;
  const std::size_t first = offset / page_size() * page_size();
  const std::size_t end = offset + std::min(length, size_ - offset);
  ::madvise(const_cast<std::byte*>(data_) + first, end - first, MADV_WILLNEED);
}

void mapped_file::done_with(std::size_t offset, std::size_t length) const {
  if (offset >= size_) return;
  // Only whole pages: a neighbour's bytes may share the first and the last one.
  const std::size_t first = (offset + page_size() - 1) / page_size() * page_size();
  const std::size_t end_byte = offset + std::min(length, size_ - offset);
  const std::size_t end = end_byte == size_ ? size_ : end_byte / page_size() * page_size();
  if (end <= first) return;
  ::madvise(const_cast<std::byte*>(data_) + first, end - first, MADV_DONTNEED);
}

}  // namespace octavo::model
