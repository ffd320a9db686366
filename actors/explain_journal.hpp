// What happened to recent requests, and why, in words: bounded retention of the
// decision log's entries by request, for explain.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/decision_record.hpp"

namespace octavo::actors {

class explain_journal final : public decision_observer {
 public:
  /// Keeps the last `requests` requests, oldest submitted forgotten first.
  explicit explain_journal(std::size_t requests) : capacity_(requests) {}

  void on_record(const decision_record& record) override;

  /// One line per decision that concerned the request, oldest first. Runs of the
  /// same decision are one line. Says so where the request is not known.
  [[nodiscard]] std::string explain(request_id id) const;

 private:
  struct entry {
    micros from;
    micros until;
    reason why = reason::admitted;
    std::uint16_t sample = 0;
    std::int64_t a = 0;
    std::int64_t b = 0;
    std::int64_t times = 1;
    std::string note;
  };

  void add(const decision_record& record, const sequence_name& who, reason why, std::int64_t a,
           std::int64_t b);

  std::size_t capacity_;
  std::unordered_map<std::uint64_t, std::vector<entry>> entries_;
  std::deque<std::uint64_t> order_;
};

}  // namespace octavo::actors
