// Replaying a decision log: the golden property, checked. The same header and
// the same ordered inputs give the same bytes, whoever the executor was, so a
// fresh engine without actors, threads or clock must make every logged decision
// again.
//
//   replay_report report = verify_log("run.log");
//   if (report.difference) std::cout << describe(*report.difference);
//
// What it proves and what not: an altered decision is always found. An altered
// input is found where it changes a decision, or where its record's hash was not
// recomputed. A log that stops early is equal as far as it goes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

#include "core/siphash.hpp"
#include "core/units.hpp"

namespace octavo::sim {

/// The first difference between a log and its replay.
struct replay_difference {
  std::uint32_t replica = 0;
  /// Number of the record among its replica's, from 1.
  std::uint64_t record = 0;
  step_id step;
  /// The field by name, as in "ran[2].tokens"; "record" where no field can be
  /// named, "hash" where all fields agree and only the chain does not.
  std::string field;
  std::string logged;
  std::string replayed;
  /// The record's hash does not follow from its bytes: the file was altered.
  bool chain_broken = false;
};

struct replay_report {
  std::uint64_t records = 0;  ///< replayed, of all replicas
  std::uint32_t replicas = 0;
  /// Over the replicas' chains in index order. For one replica it is the run's
  /// decision_log_hash; with several that one covers the router's chain too.
  hash128 hash;
  std::optional<replay_difference> difference;
};

/// Replays a log up to its first difference. Throws input_error naming file and
/// entry where it cannot be read or has no usable header.
[[nodiscard]] replay_report verify_log(const std::filesystem::path& log);

/// One sentence.
[[nodiscard]] std::string describe(const replay_difference& difference);

/// The log as JSON lines: an object for each header ("replica", "header") and
/// each record, reasons by name with their sentence. Throws input_error where
/// the log cannot be read or was altered.
void write_json_lines(const std::filesystem::path& log, std::ostream& out);

/// `sim --replay LOG [--verify]`: with `verify` replays the log and says on `out`
/// whether all bytes are equal, else prints it as JSON lines. Returns the exit
/// code: 0 equal, 1 different, 2 no log that can be read.
int replay_command(const std::filesystem::path& log, bool verify, std::ostream& out,
                   std::ostream& err);

}  // namespace octavo::sim
