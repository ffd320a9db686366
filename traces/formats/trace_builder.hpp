// Collects the requests of one file and checks what only the whole trace can
// show: names that occur twice, requests that wait for each other, prefix ids
// that do not match the prompt, arrivals out of order.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/formats/field.hpp"
#include "traces/trace.hpp"

namespace octavo::traces {

class trace_builder {
 public:
  /// `file` and `format` are for messages and for the report.
  trace_builder(std::string_view file, std::string_view format);

  /// Opens a request's list of prefix ids: `add_prefix_id` appends to it.
  void begin_prefix(request& r, const place& at);
  void add_prefix_id(request& r, std::uint64_t id) {
    result_.prefix_ids.push_back(id);
    ++r.prefix_count;
  }

  /// Adds a request read at `at`. `id` is its own name; all requests have one or none has.
  void add(const request& r, const place& at, std::string id = {});

  /// Says that the request added last arrives after the one named `id`, `delay` later.
  void last_arrives_after(std::string id, micros delay);

  /// The index of a tenant's or session's name.
  std::uint32_t intern(std::string_view name);

  void note(std::string sentence) { result_.notes.push_back(std::move(sentence)); }
  void set_prefix_block(token_count tokens) { result_.prefix_block = tokens; }
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(result_.requests.size());
  }
  /// What has been added so far.
  [[nodiscard]] const trace& so_far() const { return result_; }
  /// The line that request number `index` came from.
  [[nodiscard]] place where(std::uint32_t index) const { return {file_, lines_[index]}; }

  /// Moves all arrivals by `offset`.
  void shift_arrivals(micros offset);

  /// Checks the whole and hands it over. Throws input_error.
  [[nodiscard]] trace finish() &&;

 private:
  void link_requests();
  void reject_cycles() const;
  void check_prefixes() const;
  void sort_by_arrival();
  void reorder(const std::vector<std::uint32_t>& order);
  void drop_plain_ids();
  [[nodiscard]] std::vector<micros> earliest_arrivals() const;

  std::string file_;
  trace result_;
  std::vector<std::uint32_t> lines_;
  std::vector<std::pair<std::uint32_t, std::string>> links_;  // request, the id it waits for
  std::unordered_map<std::string, std::uint32_t> name_index_;
};

}  // namespace octavo::traces
