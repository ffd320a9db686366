// Writes what was served as a trace (octavo.trace/1), so that `sim --trace` can replay it.
//
//   recorder record{"today.jsonl", block_size, log};
//   record.arrived(spec, now_s);      // before it goes to the engine
//   record.heard(events, now_s);      // all that the engine tells
//   record.close();
//
// A line is written when its sample has ended, so lines are not in order of arrival;
// readers sort. There is no text in it: prompts are lengths and ids of blocks, which are
// keyed hashes. Requests that were refused are left out: nobody knows what they would have
// generated. Lives on one thread.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/messages.hpp"
#include "core/request.hpp"
#include "core/siphash.hpp"
#include "traces/trace.hpp"

namespace octavo::gateway {

class recorder {
 public:
  /// Replaces the file at `path`; throws input_error where it cannot be written, or is to
  /// be compressed (.gz). Once the server runs, the first fault of writing ends the
  /// recording and is told to `log`; nothing is thrown.
  recorder(std::string path, token_count block_size, std::function<void(const std::string&)> log);
  ~recorder();
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  /// Arrivals count from the first call, or from the first request: for requests that will
  /// be known later than others that came after them.
  void starts(double now_s);
  /// `spec` has its prompt's tokens and the keys of its full blocks.
  void arrived(const request_spec& spec, double now_s);
  void heard(const actors::event_batch& events, double now_s);
  /// The engine is gone: all that was under way ends here, not cancelled by anybody, with the
  /// tokens that it got.
  void engine_failed();
  /// Writes what has not ended as cancelled when the engine was last heard. Nothing is
  /// recorded any more. May be called again.
  void close();

 private:
  struct live_request {
    traces::request line;
    std::vector<std::uint64_t> prefix;
    /// By sample: tokens so far; −1 once it has ended.
    std::vector<std::int32_t> tokens;
  };

  std::vector<std::uint64_t> prefix_of(const request_spec& spec) const;
  void write(std::uint64_t id, live_request& of, std::size_t sample, bool cancelled);
  void write_all(bool cancelled);
  void flush();

  std::string path_;
  std::size_t block_size_;
  std::function<void(const std::string&)> log_;
  std::ofstream out_;
  hash128 secret_;
  std::optional<double> start_s_;
  double heard_s_ = 0;
  bool is_full_ = false;
  std::unordered_map<std::uint64_t, live_request> live_;
};

}  // namespace octavo::gateway
