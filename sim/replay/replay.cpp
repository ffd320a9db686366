// Replaying a decision log: see replay.hpp.
#include "sim/replay/replay.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/ring.hpp"
#include "sim/replay/compare.hpp"
#include "sim/replay/header.hpp"
#include "traces/log_file.hpp"

namespace octavo::sim {
namespace {

// Moments beyond this no run reaches; sums of two stay within 64 bits.
constexpr std::int64_t moment_max = std::int64_t{1} << 61;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Keeps the last record that the replaying engine made.
class last_record final : public log_sink {
 public:
  void on_entry(std::span<const std::byte> payload, const hash128&) override {
    payload_.assign(payload.begin(), payload.end());
    made_ = true;
  }
  void forget() { made_ = false; }
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] const std::vector<std::byte>& payload() const { return payload_; }

 private:
  std::vector<std::byte> payload_;
  bool made_ = false;
};

// One replica's engine, fed record by record.
class replica_replay {
 public:
  explicit replica_replay(std::string_view header)
      : log_(header), ring_(parse_header(header), log_) {
    log_.set_sink(&made_);
  }

  /// Makes the record's decisions again. Returns what is different first.
  std::optional<replay_difference> replay(const traces::log_entry& entry) {
    ++records_;
    logged_step logged;
    decision_log_decoder before = decoder_;
    try {
      logged = decoder_.decode(entry.bytes);
    } catch (const std::out_of_range& problem) {
      return differs(entry, {}, {"record", std::string{"cannot be read: "} + problem.what(), "-"});
    }
    const step_id step = logged.decisions.step;
    if (auto objection = feed(logged)) return differs(entry, step, std::move(*objection));
    if (!made_.made()) return differs(entry, step, {"record", "a record", "nothing to decide"});
    if (made_.payload() != entry.bytes) {
      if (auto found = first_difference(logged, before.decode(made_.payload()))) {
        return differs(entry, step, std::move(*found));
      }
      return differs(entry, step, {"record", "the same fields in other bytes", "-"});
    }
    if (entry.altered) {
      return differs(entry, step, {"hash", "does not follow from the bytes up to here", "-"});
    }
    return std::nullopt;
  }

  [[nodiscard]] const hash128& chain() const { return log_.chain(); }

 private:
  [[nodiscard]] replay_difference differs(const traces::log_entry& entry, step_id step,
                                          field_difference what) const {
    return {entry.replica,
            records_,
            step,
            std::move(what.field),
            std::move(what.logged),
            std::move(what.replayed),
            entry.altered};
  }

  // The inputs in order, then one plan. Returns an objection to inputs that no
  // engine can have been given here.
  std::optional<field_difference> feed(logged_step& logged) {
    for (std::size_t i = 0; i < logged.inputs.size(); ++i) {
      logged_input& input = logged.inputs[i];
      const std::string name = "inputs[" + std::to_string(i) + "].";
      if (input.stamp.raw() < -moment_max || input.stamp.raw() > moment_max) {
        return field_difference{name + "stamp", std::to_string(input.stamp.raw()), "no moment"};
      }
      if (input.kind != input_kind::result) {
        give(input);
        continue;
      }
      const std::string expected =
          in_flight_.empty() ? "no step in flight" : std::to_string(in_flight_.front()->id.raw());
      if (in_flight_.empty() || in_flight_.front()->id != input.step) {
        return field_difference{name + "step", std::to_string(input.step.raw()), expected};
      }
      const step_ptr done = std::move(in_flight_.front());
      in_flight_.pop_front();
      done->result = std::move(input.result);
      ring_.scheduler.on_result(*done, input.stamp);
      input.result = std::move(done->result);
    }
    made_.forget();
    if (!ring_.scheduler.wants_plan()) return std::nullopt;
    if (step_ptr plan = ring_.advance_once()) in_flight_.push_back(std::move(plan));
    ring_.scheduler.events().clear();
    return std::nullopt;
  }

  void give(const logged_input& input) {
    switch (input.kind) {
      case input_kind::submit:
        return ring_.scheduler.on_submit(input.spec, input.stamp);
      case input_kind::cancel:
        return ring_.scheduler.on_cancel(input.request, input.stamp);
      case input_kind::drain:
        return ring_.scheduler.on_drain(input.stamp);
      case input_kind::wake:
        return ring_.scheduler.on_wake(input.stamp);
      case input_kind::none:
      case input_kind::result:
        return;
    }
  }

  last_record made_;
  decision_log log_;
  ring ring_;
  decision_log_decoder decoder_;
  std::deque<step_ptr> in_flight_;
  std::uint64_t records_ = 0;
};

using replicas_by_index = std::map<std::uint32_t, std::unique_ptr<replica_replay>>;

void start_replica(replicas_by_index& replicas, const std::string& file,
                   const traces::log_entry& header) {
  const std::string where = file + ": replica " + std::to_string(header.replica) + ": ";
  auto& replica = replicas[header.replica];
  if (replica != nullptr) throw input_error(where + "has a second header");
  try {
    replica = std::make_unique<replica_replay>(text_of(header.bytes));
  } catch (const input_error& problem) {
    throw input_error(where + problem.what());
  }
}

hash128 hash_of(const replicas_by_index& replicas) {
  byte_writer all;
  for (const auto& [index, replica] : replicas) {
    all.put_fixed64(replica->chain().lo);
    all.put_fixed64(replica->chain().hi);
  }
  return siphash128({}, all.bytes());
}

}  // namespace

replay_report verify_log(const std::filesystem::path& log) {
  replay_report report;
  replicas_by_index replicas;
  for (const traces::log_entry& entry : traces::read_log(log, traces::altered_record::mark)) {
    if (entry.is_header) {
      start_replica(replicas, log.string(), entry);
      continue;
    }
    const auto found = replicas.find(entry.replica);
    if (found == replicas.end()) {
      throw input_error(log.string() + ": replica " + std::to_string(entry.replica) +
                        " has a record before its header");
    }
    ++report.records;
    report.difference = found->second->replay(entry);
    if (report.difference) break;
  }
  report.replicas = static_cast<std::uint32_t>(replicas.size());
  report.hash = hash_of(replicas);
  return report;
}

std::string describe(const replay_difference& d) {
  std::string text = "replica " + std::to_string(d.replica) + ", record " +
                     std::to_string(d.record) + " (step " + std::to_string(d.step.raw()) + "): ";
  if (d.field == "hash") {
    text += "every field is replayed equal, but the record's hash " + d.logged;
  } else if (d.replayed == "-") {
    text += d.field + ": " + d.logged;
  } else {
    text += d.field + " differs: logged " + d.logged + ", replayed " + d.replayed;
  }
  if (d.chain_broken && d.field != "hash") text += "; its hash does not fit either";
  return text + (d.chain_broken ? ": the file was altered" : "");
}

}  // namespace octavo::sim
