// From trace to traffic: see workload.hpp.
#include "sim/world/workload.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace octavo::sim {
namespace {

// Any fixed secret will do where no tenant is hostile; it makes runs repeatable.
constexpr hash128 trace_secret{0x6f637461766f2d73, 0x696d2d7472616365};

constexpr double longest_span_s = 1e9;

}  // namespace

workload::workload(std::shared_ptr<const traces::trace> trace, const workload_options& options,
                   const engine_config& engine)
    : trace_(std::move(trace)),
      options_(options),
      block_size_(engine.block_size),
      max_model_len_(engine.max_model_len),
      keyed_(engine.enable_prefix_caching && trace_->prefix_block > token_count{0}),
      size_(static_cast<std::uint32_t>(trace_->requests.size())),
      hasher_(trace_secret),
      scope_(hasher_.root({})) {
  if (options_.requests > 0) size_ = std::min(size_, options_.requests);
  check_span();
  auto ends = std::make_shared<output_oracle>(size_);
  for (std::uint32_t i = 0; i < size_; ++i) {
    const traces::request& r = trace_->requests[i];
    (*ends)[i] = r.prompt_tokens.raw() + r.output_tokens.raw();
    if (r.after != traces::none && r.after < size_) followers_.emplace_back(r.after, i);
  }
  std::ranges::sort(followers_);
  oracle_ = std::move(ends);
}

// The virtual clock counts nanoseconds in 64 bits; a tenth of that is plenty.
void workload::check_span() const {
  double span_s = 0;
  double delays_s = 0;
  for (std::uint32_t i = 0; i < size_; ++i) {
    const traces::request& r = trace_->requests[i];
    span_s = std::max(span_s, static_cast<double>(r.arrival.raw()) * 1e-6 / options_.rate_scale);
    delays_s += static_cast<double>(std::max(r.delay, micros{0}).raw()) * 1e-6;
  }
  if (!(span_s + delays_s <= longest_span_s)) {
    throw input_error("the traffic would last over 1e9 seconds (" + std::to_string(span_s) +
                      " s of arrivals and " + std::to_string(delays_s) +
                      " s of delays); use a higher --rate-scale or fewer --requests");
  }
}

micros workload::arrival(std::uint32_t index) const {
  const auto traced = static_cast<double>(trace_->requests[index].arrival.raw());
  if (options_.rate_scale == 1) return trace_->requests[index].arrival;
  return micros{std::llround(traced / options_.rate_scale)};
}

std::vector<std::uint32_t> workload::followers_of(std::uint32_t index) const {
  std::vector<std::uint32_t> found;
  auto at = std::ranges::lower_bound(followers_, std::pair{index, std::uint32_t{0}});
  for (; at != followers_.end() && at->first == index; ++at) found.push_back(at->second);
  return found;
}

token_count workload::limit_of(const traces::request& r) const {
  if (r.max_tokens > token_count{0}) return r.max_tokens;
  const token_count total = r.prompt_tokens + r.output_tokens;
  // What the model could never hold is sent as it is, to be refused in the open.
  if (total > max_model_len_) return r.output_tokens;
  switch (options_.limit) {
    case assumed_limit::exact:
      return r.output_tokens;
    case assumed_limit::fixed:
      return std::min(options_.fixed_tokens, max_model_len_ - r.prompt_tokens);
    case assumed_limit::context:
      break;
  }
  return max_model_len_ - r.prompt_tokens;
}

// A block is known by the trace's id of its last token: ids are chained, so it
// stands for all tokens before it too.
void workload::add_keys(const traces::request& r, std::int32_t from_block, std::int32_t to_block,
                        std::vector<block_key>& keys) const {
  const auto ids = trace_->prefix_of(r);
  for (std::int32_t i = from_block; i < to_block; ++i) {
    const std::int64_t last = (std::int64_t{i} + 1) * block_size_.raw() - 1;
    const auto id = static_cast<std::size_t>(last / trace_->prefix_block.raw());
    if (id >= ids.size()) return;
    keys.push_back(hasher_.named(scope_, ids[id], static_cast<std::uint32_t>(i)));
  }
}

// Whether `later`'s prompt begins with that of `r` and holds its answer.
bool workload::continues(const traces::request& r, const traces::request& later) const {
  if (later.prompt_tokens < r.prompt_tokens + r.output_tokens || later.prefix_count == 0) {
    return false;
  }
  const auto whole = static_cast<std::size_t>(r.prompt_tokens.raw() / trace_->prefix_block.raw());
  return whole == 0 || trace_->prefix_of(r)[whole - 1] == trace_->prefix_of(later)[whole - 1];
}

request_spec workload::spec_of(std::uint32_t index) const {
  const traces::request& r = trace_->requests[index];
  request_spec spec;
  spec.id = request_id{index};
  spec.prompt_tokens = r.prompt_tokens;
  spec.max_tokens = limit_of(r);
  spec.priority = r.priority;
  if (!keyed_ || r.prefix_count == 0) return spec;
  const std::int32_t in_prompt = r.prompt_tokens.raw() / block_size_.raw();
  add_keys(r, 0, in_prompt, spec.keys);
  // A later turn's prompt holds this answer: it knows the answer's ids.
  for (const std::uint32_t next : followers_of(index)) {
    const std::int32_t all = (r.prompt_tokens + r.output_tokens).raw() / block_size_.raw();
    const traces::request& later = trace_->requests[next];
    if (std::ssize(spec.keys) == in_prompt && continues(r, later)) {
      add_keys(later, in_prompt, all, spec.keys);
    }
  }
  return spec;
}

}  // namespace octavo::sim
