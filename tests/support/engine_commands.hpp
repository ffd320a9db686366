// Commands that drive a fake world, as values: the fuzzer generates them, and
// prints those that break something as code that compiles in a test:
//
//   const fuzz_case c{config, options, {submit{{.id = 1, .prompt = 9}}, complete_step{}}};
//   CHECK_NOTHROW(execute(c));
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "tests/support/fake_world.hpp"
#include "tests/support/log_replay.hpp"

namespace octavo::test {

struct submit {
  fake_request request;
};
struct cancel {
  std::uint64_t id = 0;
};
/// Bit j of `stops` ends the j-th sample of the step.
struct complete_step {
  std::uint64_t stops = 0;
};
struct fail_step {};
struct drain {};
struct wake {};
struct advance_clock {
  std::int64_t us = 0;
};

using command = std::variant<submit, cancel, complete_step, fail_step, drain, wake, advance_clock>;

struct fuzz_case {
  engine_config config;
  world_options options;
  std::vector<command> commands;
};

inline void apply(fake_world& world, const command& what) {
  struct visitor {
    fake_world& world;
    void operator()(const submit& c) const { world.submit(c.request); }
    void operator()(const cancel& c) const { world.cancel(c.id); }
    void operator()(const complete_step& c) const { world.complete(c.stops); }
    void operator()(const fail_step&) const { world.fail(); }
    void operator()(const drain&) const { world.drain(); }
    void operator()(const wake&) const { world.wake(); }
    void operator()(const advance_clock& c) const { world.advance_clock(c.us); }
  };
  std::visit(visitor{world}, what);
}

/// Runs the commands, then on to the end, and replays the log. Throws
/// std::logic_error where an invariant breaks.
inline void execute(const fuzz_case& c) {
  fake_world world{c.config, c.options};
  for (const command& what : c.commands) apply(world, what);
  world.run(100'000);
  world.check_end();
  replay(c.config, world.sink.payloads);
}

// ---- printing

namespace detail {

inline std::string code_of(const fake_request& r) {
  std::ostringstream out;
  const fake_request defaults;
  out << "submit{{.id = " << r.id << ", .prompt = " << r.prompt;
  const auto field = [&](const char* name, auto value, auto usual) {
    if (value != usual) out << ", ." << name << " = " << value;
  };
  field("output", r.output, defaults.output);
  field("max_tokens", r.max_tokens, defaults.max_tokens);
  field("n", r.n, defaults.n);
  field("priority", r.priority, defaults.priority);
  field("family", r.family, defaults.family);
  field("shared", r.shared, defaults.shared);
  if (!r.adapter.empty()) out << ", .adapter = \"" << r.adapter << '"';
  if (!r.salt.empty()) out << ", .salt = \"" << r.salt << '"';
  out << "}}";
  return out.str();
}

}  // namespace detail

inline std::string code_of(const command& what) {
  if (const auto* c = std::get_if<submit>(&what)) return detail::code_of(c->request);
  if (const auto* c = std::get_if<cancel>(&what)) return "cancel{" + std::to_string(c->id) + "}";
  if (const auto* c = std::get_if<complete_step>(&what)) {
    return c->stops == 0 ? "complete_step{}" : "complete_step{" + std::to_string(c->stops) + "U}";
  }
  if (std::holds_alternative<fail_step>(what)) return "fail_step{}";
  if (std::holds_alternative<drain>(what)) return "drain{}";
  if (std::holds_alternative<wake>(what)) return "wake{}";
  return "advance_clock{" + std::to_string(std::get<advance_clock>(what).us) + "}";
}

inline std::string code_of(const engine_config& c) {
  const engine_config usual;
  std::ostringstream out;
  const auto field = [&](const char* name, auto value, auto default_value) {
    if (value == default_value) return;
    out << "  c.config." << name << " = decltype(c.config." << name << "){"
        << (std::is_same_v<decltype(value), bool> ? (value ? 1 : 0) : static_cast<long long>(value))
        << "};\n";
  };
  std::string text;
  text = "  c.config.policy = parse_policy(\"" + std::string{to_string(c.policy)} + "\");\n" +
         "  c.config.scheduling_policy = parse_ordering(\"" +
         std::string{to_string(c.scheduling_policy)} + "\");\n" +
         "  c.config.layout = parse_kv_layout(\"" + std::string{to_string(c.layout)} + "\");\n";
  field("block_size", c.block_size.raw(), usual.block_size.raw());
  field("num_blocks", c.num_blocks.raw(), usual.num_blocks.raw());
  field("max_model_len", c.max_model_len.raw(), usual.max_model_len.raw());
  field("max_num_seqs", c.max_num_seqs, usual.max_num_seqs);
  field("max_num_batched_tokens", c.max_num_batched_tokens.raw(),
        usual.max_num_batched_tokens.raw());
  field("enable_chunked_prefill", c.enable_chunked_prefill, usual.enable_chunked_prefill);
  field("long_prefill_token_threshold", c.long_prefill_token_threshold.raw(),
        usual.long_prefill_token_threshold.raw());
  field("enable_prefix_caching", c.enable_prefix_caching, usual.enable_prefix_caching);
  field("scheduler_reserve_full_isl", c.scheduler_reserve_full_isl,
        usual.scheduler_reserve_full_isl);
  field("watermark", c.watermark.raw(), usual.watermark.raw());
  field("max_preemptions", c.max_preemptions, usual.max_preemptions);
  field("run_ahead", c.run_ahead, usual.run_ahead);
  field("max_num_queued_reqs", c.max_num_queued_reqs, usual.max_num_queued_reqs);
  field("max_num_queued_tokens", c.max_num_queued_tokens, usual.max_num_queued_tokens);
  text += out.str() + "  c.config.kv_groups = {";
  for (std::size_t i = 0; i < c.kv_groups.size(); ++i) {
    text += (i > 0 ? ", " : "") +
            ("kv_group{token_count{" + std::to_string(c.kv_groups[i].window.raw()) + "}}");
  }
  return text + "};\n";
}

/// The whole case as a test.
inline std::string code_of(const fuzz_case& c) {
  const auto flag = [](bool on) { return on ? "true" : "false"; };
  std::string text = "TEST_CASE(\"a case that the fuzzer found\") {\n  fuzz_case c;\n";
  text += code_of(c.config);
  text += std::string{"  c.options = {.token_ids = "} + flag(c.options.token_ids) +
          ", .prompt_keys = " + flag(c.options.prompt_keys) +
          ", .output_keys = " + flag(c.options.output_keys) +
          ", .text_keys = " + flag(c.options.text_keys) + "};\n";
  text += "  c.commands = {";
  for (std::size_t i = 0; i < c.commands.size(); ++i) {
    text += (i > 0 ? ",\n                " : "") + code_of(c.commands[i]);
  }
  return text + "};\n  CHECK_NOTHROW(execute(c));\n}\n";
}

}  // namespace octavo::test
