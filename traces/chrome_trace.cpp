// Trace events from decisions: see chrome_trace.hpp.
#include "traces/chrome_trace.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"

namespace octavo::traces {
namespace {

using json = nlohmann::ordered_json;

constexpr int steps_track = 1;

json reason_json(const sequence_name& who, reason why, std::int64_t a, std::int64_t b) {
  return {{"request", who.request.raw()}, {"reason", to_string(why)}, {"why", sentence(why, a, b)}};
}

json admitted_json(const admitted_record& a) {
  return reason_json(a.who, a.why, a.hit_tokens.raw(), 0);
}

struct token_split {
  std::int64_t prefill = 0;
  std::int64_t decode = 0;
  std::int64_t padding = 0;
};

token_split tokens_of(const decision_record& record) {
  token_split sums;
  for (const ran_record& ran : record.ran) {
    (ran.decode ? sums.decode : sums.prefill) += ran.tokens.raw();
    sums.padding += ran.padding.raw();
  }
  return sums;
}

// What a step's event says of itself: the numbers, and each reason.
json step_args(const decision_record& record) {
  const token_split tokens = tokens_of(record);
  json args = {{"prefill_tokens", tokens.prefill},
               {"decode_tokens", tokens.decode},
               {"padding_tokens", tokens.padding},
               {"budget", record.budget.raw()},
               {"sequences", record.ran.size()}};
  for (const admitted_record& a : record.admitted) args["admitted"].push_back(admitted_json(a));
  for (const preempted_record& p : record.preempted) {
    args["preempted"].push_back(reason_json(
        p.victim, reason::preempted_for, static_cast<std::int64_t>(p.requester.request.raw()), 0));
  }
  for (const held_record& h : record.held) {
    const bool cut = h.why == reason::chunked_to_budget;
    args[cut ? "cut" : "waiting"].push_back(reason_json(h.who, h.why, h.a, h.b));
  }
  if (record.behind > 0) args["behind_the_first_waiting"] = record.behind;
  return args;
}

}  // namespace

// One replica's observer.
class chrome_trace_writer::track final : public decision_observer {
 public:
  track(chrome_trace_writer& writer, std::uint32_t replica) : writer_(writer), replica_(replica) {
    meta("process_name", {{"name", "replica " + std::to_string(replica)}});
    meta("process_sort_index", {{"sort_index", replica}});
    meta("thread_name", {{"name", "steps"}});
  }

  void on_record(const decision_record& record) override {
    for (const input_record& input : record.inputs) {
      if (input.kind == input_kind::result) end_step(input.step, input.stamp);
      if (input.kind == input_kind::submit) arrive(record, input);
    }
    for (const finished_record& f : record.finished) end(f, record.now);
    for (const preempted_record& p : record.preempted) preempt(p, record.now);
    for (const admitted_record& a : record.admitted) admit(a, record.now);
    for (const held_record& h : record.held) {
      const auto found = alive_.find(h.who.request.raw());
      if (found != alive_.end() && !found->second.runs) found->second.waits_for = h.why;
    }
    count(record);
    if (!record.ran.empty()) in_flight_[record.step] = record;
    last_ = std::max(last_, record.now);
  }

  void close() {
    for (auto& [id, life] : alive_) {
      end_decode(id, life);
      if (!life.runs) part(id, life.queue_name(), life.since, last_, life.queue_args());
      outer(id, "e", last_, {{"end", "the recording ends"}});
    }
    alive_.clear();
  }

 private:
  struct request_life {
    micros since;  ///< in the queue
    bool runs = false;
    bool ran_before = false;
    reason waits_for = reason::behind_head;
    micros decode_from{-1};
    micros decode_to;
    std::int64_t decoded = 0;

    [[nodiscard]] std::string queue_name() const {
      return ran_before ? "queued after preemption" : "queued";
    }
    [[nodiscard]] json queue_args() const { return {{"waited_for_at_last", to_string(waits_for)}}; }
  };

  [[nodiscard]] json base(const std::string& name, const char* phase, micros at) const {
    return {
        {"name", name}, {"ph", phase}, {"pid", replica_}, {"tid", steps_track}, {"ts", at.raw()}};
  }
  void write(const json& event) {
    writer_.event(event.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  void meta(const std::string& what, json args) {
    json event = base(what, "M", micros{});
    event["args"] = std::move(args);
    write(event);
  }
  // Only what changes, or a long trace would be mostly counters.
  void counter(const std::string& name, micros at, json values) {
    json& known = counters_[name];
    if (known == values) return;
    known = values;
    json event = base(name, "C", at);
    event["args"] = std::move(values);
    write(event);
  }
  void instant(const std::string& name, micros at, json args) {
    json event = base(name, "i", at);
    event["s"] = "p";
    event["args"] = std::move(args);
    write(event);
  }
  void asynchronous(std::uint64_t id, const std::string& name, const char* phase, micros at,
                    json args) {
    json event = base(name, phase, at);
    event["cat"] = "request";
    event["id"] = std::to_string(id);
    event["args"] = std::move(args);
    write(event);
  }
  void outer(std::uint64_t id, const char* phase, micros at, json args) {
    asynchronous(id, "request " + writer_.name_of(id), phase, at, std::move(args));
  }
  void part(std::uint64_t id, const std::string& name, micros from, micros to, json args) {
    asynchronous(id, name, "b", from, std::move(args));
    asynchronous(id, name, "e", to, json::object());
  }

  void arrive(const decision_record& record, const input_record& input) {
    const std::uint64_t id = input.request.raw();
    const bool refused = std::ranges::any_of(record.finished, [&](const finished_record& f) {
      return f.who.request == input.request && is_rejection(f.why);
    });
    if (refused) return;
    alive_[id].since = input.stamp;
    ++waiting_;
    outer(id, "b", input.stamp,
          {{"request", id},
           {"prompt_tokens", input.prompt_tokens.raw()},
           {"max_tokens", input.max_tokens.raw()}});
  }

  // Samples of one request end one by one; the first to end closes its track.
  void end(const finished_record& f, micros now) {
    const std::uint64_t id = f.who.request.raw();
    if (is_rejection(f.why)) {
      instant("rejected: request " + writer_.name_of(id), now, reason_json(f.who, f.why, f.a, f.b));
      return;
    }
    const auto found = alive_.find(id);
    if (found == alive_.end()) return;
    request_life& life = found->second;
    end_decode(id, life);
    if (!life.runs) part(id, life.queue_name(), life.since, now, life.queue_args());
    --(life.runs ? running_ : waiting_);
    outer(id, "e", now, reason_json(f.who, f.why, f.a, f.b));
    alive_.erase(found);
  }

  void preempt(const preempted_record& p, micros now) {
    const std::uint64_t id = p.victim.request.raw();
    instant("preempted: request " + writer_.name_of(id), now,
            reason_json(p.victim, reason::preempted_for,
                        static_cast<std::int64_t>(p.requester.request.raw()), 0));
    const auto found = alive_.find(id);
    if (found == alive_.end() || !found->second.runs) return;
    // A step in flight with it still counts; compute() ends the decode then.
    if (!flies(p.victim.request)) end_decode(id, found->second);
    found->second.runs = false;
    found->second.ran_before = true;
    found->second.since = now;
    --running_;
    ++waiting_;
  }

  void admit(const admitted_record& a, micros now) {
    const std::uint64_t id = a.who.request.raw();
    const auto found = alive_.find(id);
    if (found == alive_.end() || found->second.runs) return;
    request_life& life = found->second;
    json args = admitted_json(a);
    if (now > life.since) args.update(life.queue_args());
    part(id, life.queue_name(), life.since, now, std::move(args));
    life.runs = true;
    life.waits_for = reason::behind_head;
    ++running_;
    --waiting_;
  }

  void end_step(step_id step, micros to) {
    const auto found = in_flight_.find(step);
    if (found != in_flight_.end()) {
      const decision_record& plan = found->second;
      const micros from = std::max(plan.now, busy_until_);
      json event = base("step " + std::to_string(step.raw()), "X", from);
      event["dur"] = (to - from).raw();
      event["args"] = step_args(plan);
      write(event);
      const token_split tokens = tokens_of(plan);
      counter(
          "tokens of the step", from,
          {{"prefill", tokens.prefill}, {"decode", tokens.decode}, {"padding", tokens.padding}});
      for (const ran_record& ran : plan.ran) compute(ran, step, from, to);
      in_flight_.erase(found);
    }
    busy_until_ = std::max(busy_until_, to);
    last_ = std::max(last_, to);
  }

  void compute(const ran_record& ran, step_id step, micros from, micros to) {
    const std::uint64_t id = ran.who.request.raw();
    const auto found = alive_.find(id);
    if (found == alive_.end() || ran.tokens.raw() == 0) return;
    request_life& life = found->second;
    if (!life.runs) life.since = std::max(life.since, to);
    if (!ran.decode) {
      part(id, "prefill", from, to,
           {{"step", step.raw()},
            {"tokens", ran.tokens.raw()},
            {"padding_tokens", ran.padding.raw()}});
      return;
    }
    if (life.decode_from < micros{0}) life.decode_from = from;
    life.decode_to = to;
    ++life.decoded;
    if (!life.runs) end_decode(id, life);
  }

  [[nodiscard]] bool flies(request_id who) const {
    return std::ranges::any_of(in_flight_, [&](const auto& planned) {
      return std::ranges::any_of(planned.second.ran,
                                 [&](const ran_record& ran) { return ran.who.request == who; });
    });
  }

  void end_decode(std::uint64_t id, request_life& life) {
    if (life.decode_from < micros{0}) return;
    part(id, "decode", life.decode_from, life.decode_to, {{"tokens", life.decoded}});
    life.decode_from = micros{-1};
    life.decoded = 0;
  }

  void count(const decision_record& record) {
    counter("KV blocks", record.now, {{"used", record.used.raw()}, {"free", record.free.raw()}});
    counter("requests", record.now, {{"running", running_}, {"waiting", waiting_}});
  }

  chrome_trace_writer& writer_;
  std::uint32_t replica_;
  std::map<std::uint64_t, request_life> alive_;
  std::map<step_id, decision_record> in_flight_;
  micros busy_until_;
  micros last_;
  std::map<std::string, json> counters_;  ///< last values written
  std::int64_t running_ = 0;
  std::int64_t waiting_ = 0;
};

chrome_trace_writer::chrome_trace_writer(std::ostream& out, namer names)
    : out_(out), names_(std::move(names)) {
  out_ << R"({"displayTimeUnit":"ms","traceEvents":[)";
}

chrome_trace_writer::~chrome_trace_writer() {
  try {
    finish();
  } catch (const input_error&) {
    // Whoever wants to know has called finish() before.
  }
}

decision_observer& chrome_trace_writer::replica(std::uint32_t index) {
  return *tracks_.emplace_back(std::make_unique<track>(*this, index));
}

void chrome_trace_writer::event(const std::string& fields) {
  out_ << (first_ ? "\n" : ",\n") << fields;
  first_ = false;
}

std::string chrome_trace_writer::name_of(std::uint64_t request) const {
  const std::string number = std::to_string(request);
  if (!names_) return number;
  const std::string name = names_(request);
  return name == number ? number : number + " " + name;
}

void chrome_trace_writer::finish() {
  if (finished_) return;
  finished_ = true;
  for (const auto& t : tracks_) t->close();
  out_ << "\n]}\n";
  out_.flush();
  if (!out_) throw input_error("the Chrome trace cannot be written: is the disk full?");
}

}  // namespace octavo::traces
