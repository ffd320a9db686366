// Whole-trace checks; see trace_builder.hpp.
#include "traces/formats/trace_builder.hpp"

#include <algorithm>
#include <numeric>

namespace octavo::traces {

trace_builder::trace_builder(std::string_view file, std::string_view format) : file_(file) {
  result_.format = format;
}

void trace_builder::begin_prefix(request& r, const place& at) {
  if (result_.prefix_ids.size() >= none) fail(at, "more than 4294967295 prefix ids in one trace");
  r.prefix_begin = static_cast<std::uint32_t>(result_.prefix_ids.size());
  r.prefix_count = 0;
}

void trace_builder::add(const request& r, const place& at, std::string id) {
  if (result_.requests.size() >= none - 1) fail(at, "more than 4294967294 requests in one trace");
  result_.requests.push_back(r);
  lines_.push_back(static_cast<std::uint32_t>(at.line));
  if (!id.empty()) result_.ids.push_back(std::move(id));
}

void trace_builder::last_arrives_after(std::string id, micros delay) {
  result_.requests.back().delay = delay;
  links_.emplace_back(size() - 1, std::move(id));
}

std::uint32_t trace_builder::intern(std::string_view name) {
  const auto next = static_cast<std::uint32_t>(result_.names.size());
  const auto [entry, added] = name_index_.emplace(name, next);
  if (added) result_.names.emplace_back(name);
  return entry->second;
}

void trace_builder::shift_arrivals(micros offset) {
  for (request& r : result_.requests) r.arrival += offset;
}

trace trace_builder::finish() && {
  if (result_.requests.empty()) fail({file_, 0}, "holds no requests");
  link_requests();
  reject_cycles();
  check_prefixes();
  sort_by_arrival();
  drop_plain_ids();
  return std::move(result_);
}

void trace_builder::link_requests() {
  if (result_.ids.empty()) return;
  std::unordered_map<std::string_view, std::uint32_t> index;
  index.reserve(result_.ids.size());
  for (std::uint32_t i = 0; i < size(); ++i) {
    const auto [entry, added] = index.emplace(result_.ids[i], i);
    if (!added) {
      fail(where(i), "id \"" + quoted(result_.ids[i]) + "\" was used before, on line " +
                         std::to_string(lines_[entry->second]) + "; ids must differ");
    }
  }
  for (const auto& [request_index, id] : links_) {
    const auto found = index.find(id);
    if (found == index.end()) fail(where(request_index), "after", id, "the id of another request");
    result_.requests[request_index].after = found->second;
  }
}

void trace_builder::reject_cycles() const {
  // Each request waits for at most one other, so a walk that meets its own mark is a cycle.
  std::vector<std::uint32_t> mark(size(), none);
  for (std::uint32_t start = 0; start < size(); ++start) {
    std::uint32_t i = start;
    while (i != none && mark[i] == none) {
      mark[i] = start;
      i = result_.requests[i].after;
    }
    if (i != none && mark[i] == start) {
      fail(where(i), "request \"" + quoted(result_.name_of(i)) +
                         "\" arrives after itself: following \"after\" leads back to it");
    }
  }
}

void trace_builder::check_prefixes() const {
  const token_count block = result_.prefix_block;
  for (std::uint32_t i = 0; i < size(); ++i) {
    const request& r = result_.requests[i];
    if (r.prefix_count == 0) continue;
    if (block.raw() <= 0) {
      fail(where(i), "has prefix ids, but the file does not say \"prefix_block\", tokens per id");
    }
    const auto wanted = static_cast<std::uint32_t>(blocks_for(r.prompt_tokens, block).raw());
    if (r.prefix_count == wanted) continue;
    fail(where(i), "has " + std::to_string(r.prefix_count) + " prefix ids for a prompt of " +
                       std::to_string(r.prompt_tokens.raw()) + " tokens; at " +
                       std::to_string(block.raw()) + " tokens a block it needs ceil(" +
                       std::to_string(r.prompt_tokens.raw()) + " / " + std::to_string(block.raw()) +
                       ") = " + std::to_string(wanted));
  }
}

std::vector<micros> trace_builder::earliest_arrivals() const {
  // A request that waits for another stands where the first of its chain stands.
  std::vector<micros> result(size());
  std::vector<std::uint32_t> chain;
  std::vector<bool> known(size());
  for (std::uint32_t start = 0; start < size(); ++start) {
    std::uint32_t i = start;
    chain.clear();
    while (!known[i] && result_.requests[i].after != none) {
      chain.push_back(i);
      i = result_.requests[i].after;
    }
    if (!known[i]) result[i] = result_.requests[i].arrival;
    known[i] = true;
    for (const std::uint32_t link : chain) {
      result[link] = result[i];
      known[link] = true;
    }
  }
  return result;
}

void trace_builder::sort_by_arrival() {
  std::size_t backward = 0;
  micros latest{0};
  for (const request& r : result_.requests) {
    if (r.after != none) continue;
    if (r.arrival < latest) ++backward;
    latest = std::max(latest, r.arrival);
  }
  if (backward == 0) return;
  const auto keys = earliest_arrivals();
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  reorder(order);
  note(std::to_string(backward) +
       " requests arrive earlier than one before them in the file; sorted by arrival.");
}

void trace_builder::reorder(const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> position(size());
  for (std::uint32_t i = 0; i < size(); ++i) position[order[i]] = i;
  std::vector<request> requests;
  std::vector<std::string> ids;
  requests.reserve(size());
  for (const std::uint32_t old : order) {
    requests.push_back(result_.requests[old]);
    if (requests.back().after != none) requests.back().after = position[requests.back().after];
    if (!result_.ids.empty()) ids.push_back(std::move(result_.ids[old]));
  }
  result_.requests = std::move(requests);
  result_.ids = std::move(ids);
}

void trace_builder::drop_plain_ids() {
  for (std::uint32_t i = 0; i < result_.ids.size(); ++i) {
    if (result_.ids[i] != std::to_string(i)) return;
  }
  result_.ids.clear();
}

}  // namespace octavo::traces
