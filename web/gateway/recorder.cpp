// Lines of a trace, one for each sample that has ended: see recorder.hpp.
#include "web/gateway/recorder.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "traces/writer.hpp"

namespace octavo::gateway {
namespace {

/// Requests under way at once; a gateway's queue is far shorter.
constexpr std::size_t live_max = 1 << 20;

hash128 random_secret() {
  std::random_device device;
  const auto word = [&] { return (std::uint64_t{device()} << 32) | device(); };
  return {word(), word()};
}

micros to_micros(double seconds) {
  return micros{std::max<std::int64_t>(0, std::llround(seconds * 1e6))};
}

}  // namespace

recorder::recorder(std::string path, token_count block_size,
                   std::function<void(const std::string&)> log)
    : path_(std::move(path)),
      block_size_(static_cast<std::size_t>(block_size.raw())),
      log_(std::move(log)),
      secret_(random_secret()) {
  if (path_.ends_with(".gz")) {
    throw input_error("record-trace: given \"" + path_ +
                      "\"; it is written as plain lines: leave .gz out and compress it later");
  }
  out_.open(path_, std::ios::binary | std::ios::trunc);
  traces::trace header;
  header.prefix_block = block_size;
  header.notes = {
      "recorded by octavo serve; a request that was cancelled, or that the engine failed, would "
      "have generated an unknown number of tokens: its line gives those that it got, at least 1"};
  std::string line;
  traces::append_header(line, header);
  out_ << line << std::flush;
  if (!out_) throw input_error("record-trace: \"" + path_ + "\" cannot be written");
}

recorder::~recorder() {
  close();
}

void recorder::starts(double now_s) {
  if (!start_s_) start_s_ = now_s;
}

void recorder::arrived(const request_spec& spec, double now_s) {
  if (!out_.is_open() || spec.prompt == nullptr) return;
  if (live_.size() >= live_max) {
    if (!std::exchange(is_full_, true)) {
      log_("record-trace: " + std::to_string(live_max) +
           " requests are under way; those beyond are not recorded");
    }
    return;
  }
  starts(now_s);
  heard_s_ = std::max(heard_s_, now_s);
  live_request of;
  of.line.arrival = to_micros(now_s - *start_s_);
  of.line.prompt_tokens = spec.prompt_tokens;
  of.line.max_tokens = spec.max_tokens;
  of.line.priority = spec.priority;
  of.prefix = prefix_of(spec);
  of.tokens.resize(static_cast<std::size_t>(spec.n));
  live_.emplace(spec.id.raw(), std::move(of));
}

// The form wants an id for the partial block at the end too; nobody has keyed that one.
std::vector<std::uint64_t> recorder::prefix_of(const request_spec& spec) const {
  const std::span tokens{*spec.prompt};
  const std::size_t full = tokens.size() / block_size_;
  std::vector<std::uint64_t> ids;
  if (spec.keys.size() < full) return ids;
  for (std::size_t i = 0; i < full; ++i) ids.push_back(spec.keys[i].lo);
  if (const auto tail = tokens.subspan(full * block_size_); !tail.empty()) {
    const hash128& parent = full == 0 ? secret_ : spec.keys[full - 1];
    ids.push_back(siphash128(parent, std::as_bytes(tail)).lo);
  }
  return ids;
}

void recorder::heard(const actors::event_batch& events, double now_s) {
  if (!out_.is_open()) return;
  heard_s_ = std::max(heard_s_, now_s);
  for (const token_event& token : events.tokens) {
    const auto found = live_.find(token.request.raw());
    if (found != live_.end()) ++found->second.tokens.at(token.sample);
  }
  for (const finish_event& end : events.finishes) {
    const auto found = live_.find(end.request.raw());
    if (found == live_.end()) continue;
    if (!is_rejection(end.why)) {
      write(end.request.raw(), found->second, end.sample, end.why == reason::finished_cancelled);
    }
    if (end.request_done) live_.erase(found);
  }
  if (!events.finishes.empty()) flush();
}

void recorder::write(std::uint64_t id, live_request& of, std::size_t sample, bool cancelled) {
  const std::int32_t tokens = std::exchange(of.tokens.at(sample), -1);
  if (tokens < 0) return;
  traces::trace one;
  one.ids = {std::to_string(id)};
  if (of.tokens.size() > 1) one.ids.front() += "." + std::to_string(sample);
  one.requests = {of.line};
  traces::request& line = one.requests.front();
  line.output_tokens = token_count{std::max(1, tokens)};
  if (cancelled) {
    const micros now = to_micros(heard_s_ - *start_s_);
    line.cancel = std::max(micros{0}, now - line.arrival);
  }
  one.prefix_ids = of.prefix;
  line.prefix_count = static_cast<std::uint32_t>(of.prefix.size());
  std::string text;
  traces::append_request(text, one, 0);
  out_ << text;
}

void recorder::flush() {
  out_.flush();
  if (out_) return;
  log_("record-trace: \"" + path_ + "\" cannot be written any more; the recording ends here");
  out_.close();
  live_.clear();
}

void recorder::write_all(bool cancelled) {
  for (auto& [id, of] : live_) {
    for (std::size_t sample = 0; sample < of.tokens.size(); ++sample) {
      write(id, of, sample, cancelled);
    }
  }
  live_.clear();
  flush();
}

void recorder::engine_failed() {
  if (out_.is_open()) write_all(false);
}

void recorder::close() {
  if (!out_.is_open()) return;
  write_all(true);
  out_.close();
}

}  // namespace octavo::gateway
