// Decision logs on disk.
//
//   "octavo.log/1\n"
//   entries:  varint replica, varint kind, varint length, bytes
//     kind 0: the replica's header, its configuration as JSON
//     kind 1: a record's payload (core/decision_log.hpp), then 8 bytes: the low
//             half of the chain after it
//
// Records of several replicas stand in the order in which they were made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/decision_log.hpp"
#include "core/error.hpp"

namespace octavo::traces {

class log_file_writer {
 public:
  /// Throws input_error where the file cannot be written.
  explicit log_file_writer(const std::filesystem::path& file);

  /// The sink of one replica's log; writes the header. Lives as long as this.
  [[nodiscard]] log_sink* replica(std::uint32_t index, std::string_view header);
  /// Flushes; throws input_error where the disk did not take it.
  void close();

 private:
  class replica_sink;
  void put(std::uint32_t replica, std::uint64_t kind, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::ofstream out_;
  std::vector<std::unique_ptr<log_sink>> sinks_;

 public:
  ~log_file_writer();
};

/// One entry of a log file.
struct log_entry {
  std::uint32_t replica = 0;
  bool is_header = false;
  /// A header's JSON or a record's payload.
  std::vector<std::byte> bytes;
  std::uint64_t chain_lo = 0;
  /// The hash does not follow from the bytes up to here. Later records of the
  /// same replica are altered too: each hash covers all before it.
  bool altered = false;
};

/// What read_log does about a record whose hash does not fit.
enum class altered_record : std::uint8_t { refuse, mark };

/// Reads a whole log. Throws input_error naming file and entry where it is cut
/// short, is no log, or (unless told to mark it) where a record's chain does not
/// follow from its bytes.
[[nodiscard]] std::vector<log_entry> read_log(const std::filesystem::path& file,
                                              altered_record where = altered_record::refuse);

}  // namespace octavo::traces
