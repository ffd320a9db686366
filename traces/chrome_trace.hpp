// A run as a Chrome trace, to be opened in Perfetto or chrome://tracing: the
// JSON object form of the Trace Event Format.
//
//   chrome_trace_writer trace{stream};
//   scheduler.observe(trace.replica(0));
//   …
//   trace.finish();
//
// A replica is a process. Its steps are complete events (`X`) with what ran and
// why others did not; each request is an asynchronous track (`b`/`e`) with its
// time in the queue, prefill and decode; KV blocks, requests and tokens are
// counters; preemptions and rejections are instants.
//
// Events are written as soon as they are known: memory is bounded by the
// requests alive and the steps in flight.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "core/decision_record.hpp"

namespace octavo::traces {

class chrome_trace_writer {
 public:
  /// A request's name for people; its number where null.
  using namer = std::function<std::string(std::uint64_t)>;

  /// Writes the start. `out` outlives this.
  explicit chrome_trace_writer(std::ostream& out, namer names = nullptr);
  /// Finishes, if that was not done; errors are lost then.
  ~chrome_trace_writer();
  chrome_trace_writer(const chrome_trace_writer&) = delete;
  chrome_trace_writer& operator=(const chrome_trace_writer&) = delete;

  /// Who hears the records of one replica. Lives as long as this.
  [[nodiscard]] decision_observer& replica(std::uint32_t index);

  /// Ends what is open and closes the JSON. Throws input_error where the stream
  /// did not take it all.
  void finish();

 private:
  class track;
  friend class track;
  void event(const std::string& fields);
  [[nodiscard]] std::string name_of(std::uint64_t request) const;

  std::ostream& out_;
  namer names_;
  bool first_ = true;
  bool finished_ = false;
  std::vector<std::unique_ptr<track>> tracks_;
};

}  // namespace octavo::traces
