// The decision log as JSON lines: see replay.hpp. Times are microseconds.
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/decision_log.hpp"
#include "core/error.hpp"
#include "sim/replay/replay.hpp"
#include "sim/replay/text.hpp"
#include "traces/log_file.hpp"

namespace octavo::sim {
namespace {

using json = nlohmann::ordered_json;

template <class Entry, class Convert>
json list_of(const std::vector<Entry>& entries, Convert convert) {
  json list = json::array();
  for (const Entry& entry : entries) list.push_back(convert(entry));
  return list;
}

json named(const sequence_name& who) {
  return {{"request", who.request.raw()}, {"sample", who.sample}};
}

// A sequence and why: the name for tools, the sentence for people.
json reasoned(const sequence_name& who, reason why, std::int64_t a, std::int64_t b) {
  json entry = named(who);
  entry["reason"] = to_string(why);
  entry["sentence"] = sentence(why, a, b);
  return entry;
}

json with_numbers(json entry, std::int64_t a, std::int64_t b) {
  entry["a"] = a;
  entry["b"] = b;
  return entry;
}

json input_of(const logged_input& input) {
  json entry{{"kind", name_of(input.kind)}, {"stamp_us", input.stamp.raw()}};
  if (input.kind == input_kind::submit) {
    entry["request"] = input.spec.id.raw();
    entry["prompt_tokens"] = input.spec.prompt_tokens.raw();
    entry["max_tokens"] = input.spec.max_tokens.raw();
    entry["priority"] = input.spec.priority;
    entry["n"] = input.spec.n;
    entry["keys"] = list_of(input.spec.keys, [](const block_key& key) { return to_hex(key); });
  } else if (input.kind == input_kind::cancel) {
    entry["request"] = input.request.raw();
  } else if (input.kind == input_kind::result) {
    entry["step"] = input.step.raw();
    entry["status"] = input.result.status == step_status::ok ? "ok" : "failed";
    entry["finishes"] = list_of(input.result.finishes, [](const sequence_finish& f) {
      return json{{"work", f.work}, {"sample", f.sample}, {"kind", name_of(f.kind)}};
    });
    entry["output_keys"] = list_of(input.result.output_keys, [](const auto& pair) {
      return json{{"work", pair.first}, {"key", to_hex(pair.second)}};
    });
  }
  return entry;
}

json record_of(std::uint32_t replica, std::uint64_t number, const logged_step& step) {
  const decision_record& d = step.decisions;
  json line{{"replica", replica},
            {"record", number},
            {"step", d.step.raw()},
            {"now_us", d.now.raw()},
            {"budget", d.budget.raw()}};
  line["inputs"] = list_of(step.inputs, input_of);
  line["ran"] = list_of(d.ran, [](const ran_record& r) {
    json entry = named(r.who);
    entry["decode"] = r.decode;
    entry["tokens"] = r.tokens.raw();
    entry["padding"] = r.padding.raw();
    return entry;
  });
  line["admitted"] = list_of(d.admitted, [](const admitted_record& a) {
    json entry = reasoned(a.who, a.why, a.hit_tokens.raw(), 0);
    entry["hit_tokens"] = a.hit_tokens.raw();
    return entry;
  });
  line["preempted"] = list_of(d.preempted, [](const preempted_record& p) {
    json entry = reasoned(p.victim, reason::preempted_for,
                          static_cast<std::int64_t>(p.requester.request.raw()), 0);
    entry["for"] = named(p.requester);
    return entry;
  });
  const auto with_reason = [](const auto& entry) {
    return with_numbers(reasoned(entry.who, entry.why, entry.a, entry.b), entry.a, entry.b);
  };
  line["finished"] = list_of(d.finished, with_reason);
  line["held"] = list_of(d.held, with_reason);
  line["behind"] = d.behind;
  line["free"] = d.free.raw();
  line["used"] = d.used.raw();
  return line;
}

json header_of(const std::string& file, const traces::log_entry& entry) {
  const std::string text(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
  json header = json::parse(text, nullptr, false);
  if (header.is_discarded()) {
    throw input_error(file + ": replica " + std::to_string(entry.replica) +
                      ": its header is no JSON");
  }
  return {{"replica", entry.replica}, {"header", std::move(header)}};
}

}  // namespace

void write_json_lines(const std::filesystem::path& log, std::ostream& out) {
  struct replica_state {
    decision_log_decoder decoder;
    std::uint64_t records = 0;
  };
  std::map<std::uint32_t, replica_state> replicas;
  for (const traces::log_entry& entry : traces::read_log(log)) {
    replica_state& replica = replicas[entry.replica];
    if (entry.is_header) {
      out << header_of(log.string(), entry).dump() << '\n';
      continue;
    }
    ++replica.records;
    try {
      out << record_of(entry.replica, replica.records, replica.decoder.decode(entry.bytes)).dump()
          << '\n';
    } catch (const std::out_of_range& problem) {
      throw input_error(log.string() + ": replica " + std::to_string(entry.replica) + ", record " +
                        std::to_string(replica.records) + " cannot be read: " + problem.what());
    }
  }
}

}  // namespace octavo::sim
