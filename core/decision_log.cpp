// Encoding and decoding of decision records: see decision_log.hpp.
#include "core/decision_log.hpp"

#include <algorithm>

namespace octavo {
namespace {

// The list of those that ran is written out, or is the last record's: the
// common case of a batch that just decodes on.
enum ran_coding : std::uint64_t { ran_listed = 0, ran_as_before = 1 };

bool all_decode_one(const std::vector<ran_record>& ran) {
  return std::ranges::all_of(ran, [](const ran_record& r) {
    return r.decode && r.tokens == token_count{1} && r.padding == token_count{0};
  });
}

token_count get_tokens(byte_reader& in) {
  return token_count{static_cast<std::int32_t>(in.get())};
}

// Damaged bytes may hold any difference: the sum wraps instead of overflowing.
micros get_moment(byte_reader& in, micros base) {
  return micros{static_cast<std::int64_t>(static_cast<std::uint64_t>(base.raw()) +
                                          static_cast<std::uint64_t>(in.get_signed()))};
}

sequence_name get_name(byte_reader& in) {
  sequence_name name;
  name.request = request_id{in.get()};
  name.sample = static_cast<std::uint16_t>(in.get());
  return name;
}

reason get_reason(byte_reader& in) {
  const std::uint64_t value = in.get();
  if (value >= reason_count) throw std::out_of_range("an unknown reason");
  return static_cast<reason>(value);
}

request_spec get_spec(byte_reader& in) {
  request_spec spec;
  spec.id = request_id{in.get()};
  spec.prompt_tokens = get_tokens(in);
  spec.max_tokens = get_tokens(in);
  spec.priority = static_cast<std::int32_t>(in.get_signed());
  spec.n = static_cast<std::int32_t>(in.get_signed());
  spec.keys.resize(in.get_count());
  for (block_key& key : spec.keys) {
    key.lo = in.get_fixed64();
    key.hi = in.get_fixed64();
  }
  return spec;
}

void get_result(byte_reader& in, logged_input& input) {
  input.step = step_id{in.get()};
  input.result.status = in.get() == 0 ? step_status::ok : step_status::failed;
  input.result.finishes.resize(in.get_count());
  for (sequence_finish& f : input.result.finishes) {
    f.work = static_cast<std::uint32_t>(in.get());
    f.sample = static_cast<std::uint16_t>(in.get());
    const std::uint64_t kind = in.get();
    if (kind > static_cast<std::uint64_t>(finish_kind::error)) {
      throw std::out_of_range("an unknown finish");
    }
    f.kind = static_cast<finish_kind>(kind);
  }
  input.result.output_keys.resize(in.get_count());
  for (auto& [work, key] : input.result.output_keys) {
    work = static_cast<std::uint32_t>(in.get());
    key.lo = in.get_fixed64();
    key.hi = in.get_fixed64();
  }
}

}  // namespace

bool operator==(const logged_input& a, const logged_input& b) {
  return a.kind == b.kind && a.stamp == b.stamp && a.spec.id == b.spec.id &&
         a.spec.prompt_tokens == b.spec.prompt_tokens && a.spec.max_tokens == b.spec.max_tokens &&
         a.spec.priority == b.spec.priority && a.spec.n == b.spec.n && a.spec.keys == b.spec.keys &&
         a.request == b.request && a.step == b.step && a.result.status == b.result.status &&
         a.result.finishes == b.result.finishes && a.result.output_keys == b.result.output_keys;
}

hash128 chain_of_header(std::string_view header) {
  return siphash128({}, std::as_bytes(std::span{header.data(), header.size()}));
}

hash128 chain_next(const hash128& chain, std::span<const std::byte> payload) {
  return siphash128(chain, payload);
}

decision_log::decision_log(std::string_view header) : chain_(chain_of_header(header)) {}

void decision_log::start_input(input_kind kind, micros stamp) {
  out_.put(static_cast<std::uint64_t>(kind));
  out_.put_signed((stamp - last_stamp_).raw());
  last_stamp_ = stamp;
}

void decision_log::add_submit(const request_spec& spec, micros stamp) {
  if (!enabled_) return;
  start_input(input_kind::submit, stamp);
  out_.put(spec.id.raw());
  out_.put(static_cast<std::uint64_t>(spec.prompt_tokens.raw()));
  out_.put(static_cast<std::uint64_t>(spec.max_tokens.raw()));
  out_.put_signed(spec.priority);
  out_.put_signed(spec.n);
  out_.put(spec.keys.size());
  for (const block_key& key : spec.keys) {
    out_.put_fixed64(key.lo);
    out_.put_fixed64(key.hi);
  }
}

void decision_log::add_cancel(request_id id, micros stamp) {
  if (!enabled_) return;
  start_input(input_kind::cancel, stamp);
  out_.put(id.raw());
}

void decision_log::add_drain(micros stamp) {
  if (enabled_) start_input(input_kind::drain, stamp);
}

void decision_log::add_wake(micros stamp) {
  if (enabled_) start_input(input_kind::wake, stamp);
}

void decision_log::add_result(const step& done, micros stamp) {
  if (!enabled_) return;
  start_input(input_kind::result, stamp);
  out_.put(done.id.raw());
  out_.put(done.result.status == step_status::ok ? 0 : 1);
  out_.put(done.result.finishes.size());
  for (const sequence_finish& f : done.result.finishes) {
    out_.put(f.work);
    out_.put(f.sample);
    out_.put(static_cast<std::uint64_t>(f.kind));
  }
  out_.put(done.result.output_keys.size());
  for (const auto& [work, key] : done.result.output_keys) {
    out_.put(work);
    out_.put_fixed64(key.lo);
    out_.put_fixed64(key.hi);
  }
}

void decision_log::put_name(const sequence_name& name) {
  out_.put(name.request.raw());
  out_.put(name.sample);
}

void decision_log::put_ran(const std::vector<ran_record>& ran) {
  if (ran == last_ran_ && all_decode_one(ran)) {
    out_.put(ran_as_before);
    return;
  }
  out_.put(ran_listed);
  out_.put(ran.size());
  std::uint64_t previous = 0;
  for (const ran_record& r : ran) {
    out_.put_signed(static_cast<std::int64_t>(r.who.request.raw() - previous));
    previous = r.who.request.raw();
    const bool padded = r.padding > token_count{0};
    out_.put((std::uint64_t{r.who.sample} << 2) | (r.decode ? 2U : 0U) | (padded ? 1U : 0U));
    out_.put(static_cast<std::uint64_t>(r.tokens.raw()));
    if (padded) out_.put(static_cast<std::uint64_t>(r.padding.raw()));
  }
  last_ran_ = ran;
}

void decision_log::put_decisions(const decision_record& record) {
  out_.put(record.step.raw());
  out_.put_signed((record.now - last_stamp_).raw());
  out_.put(static_cast<std::uint64_t>(record.budget.raw()));
  put_ran(record.ran);
  out_.put(record.admitted.size());
  for (const admitted_record& a : record.admitted) {
    put_name(a.who);
    out_.put(static_cast<std::uint64_t>(a.why));
    out_.put(static_cast<std::uint64_t>(a.hit_tokens.raw()));
  }
  out_.put(record.preempted.size());
  for (const preempted_record& p : record.preempted) {
    put_name(p.victim);
    put_name(p.requester);
  }
  const auto put_reasoned = [&](const auto& entries) {
    out_.put(entries.size());
    for (const auto& entry : entries) {
      put_name(entry.who);
      out_.put(static_cast<std::uint64_t>(entry.why));
      out_.put_signed(entry.a);
      out_.put_signed(entry.b);
    }
  };
  put_reasoned(record.finished);
  put_reasoned(record.held);
  out_.put_signed(record.behind);
  out_.put(static_cast<std::uint64_t>(record.free.raw()));
  out_.put(static_cast<std::uint64_t>(record.used.raw()));
}

void decision_log::commit(const decision_record& record) {
  if (!enabled_) return;
  out_.put(static_cast<std::uint64_t>(input_kind::none));
  put_decisions(record);
  chain_ = chain_next(chain_, out_.bytes());
  ++records_;
  if (sink_ != nullptr) sink_->on_entry(out_.bytes(), chain_);
  out_.clear();
}

void decision_log_decoder::get_decisions(byte_reader& in, decision_record& record) {
  record.step = step_id{in.get()};
  record.now = get_moment(in, last_stamp_);
  record.budget = get_tokens(in);
  const std::uint64_t coding = in.get();
  if (coding > ran_as_before) throw std::out_of_range("an unknown coding of those that ran");
  if (coding == ran_as_before) {
    record.ran = last_ran_;
  } else {
    record.ran.resize(in.get_count());
    std::uint64_t previous = 0;
    for (ran_record& r : record.ran) {
      previous += static_cast<std::uint64_t>(in.get_signed());
      r.who.request = request_id{previous};
      const std::uint64_t flags = in.get();
      r.who.sample = static_cast<std::uint16_t>(flags >> 2);
      r.decode = (flags & 2) != 0;
      r.tokens = get_tokens(in);
      if ((flags & 1) != 0) r.padding = get_tokens(in);
    }
    last_ran_ = record.ran;
  }
  record.admitted.resize(in.get_count());
  for (admitted_record& a : record.admitted) {
    a.who = get_name(in);
    a.why = get_reason(in);
    a.hit_tokens = get_tokens(in);
  }
  record.preempted.resize(in.get_count());
  for (preempted_record& p : record.preempted) {
    p.victim = get_name(in);
    p.requester = get_name(in);
  }
  const auto get_reasoned = [&](auto& entries) {
    entries.resize(in.get_count());
    for (auto& entry : entries) {
      entry.who = get_name(in);
      entry.why = get_reason(in);
      entry.a = in.get_signed();
      entry.b = in.get_signed();
    }
  };
  get_reasoned(record.finished);
  get_reasoned(record.held);
  record.behind = in.get_signed();
  record.free = block_count{static_cast<std::int32_t>(in.get())};
  record.used = block_count{static_cast<std::int32_t>(in.get())};
}

logged_step decision_log_decoder::decode(std::span<const std::byte> payload) {
  logged_step decoded;
  byte_reader in{payload};
  for (;;) {
    const std::uint64_t kind = in.get();
    if (kind > static_cast<std::uint64_t>(input_kind::result)) {
      throw std::out_of_range("an unknown kind of input");
    }
    if (static_cast<input_kind>(kind) == input_kind::none) break;
    logged_input input;
    input.kind = static_cast<input_kind>(kind);
    last_stamp_ = get_moment(in, last_stamp_);
    input.stamp = last_stamp_;
    if (input.kind == input_kind::submit) input.spec = get_spec(in);
    if (input.kind == input_kind::cancel) input.request = request_id{in.get()};
    if (input.kind == input_kind::result) get_result(in, input);
    decoded.inputs.push_back(std::move(input));
  }
  get_decisions(in, decoded.decisions);
  if (!in.done()) throw std::out_of_range("bytes behind the record's end");
  for (const logged_input& input : decoded.inputs) {
    input_record brief{input.kind, input.stamp, input.request, {}, {}, input.step};
    if (input.kind == input_kind::submit) {
      brief.request = input.spec.id;
      brief.prompt_tokens = input.spec.prompt_tokens;
      brief.max_tokens = input.spec.max_tokens;
    }
    decoded.decisions.inputs.push_back(brief);
  }
  return decoded;
}

}  // namespace octavo
