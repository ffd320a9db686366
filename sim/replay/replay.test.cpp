// Replaying decision logs: equal ones verify, and whatever is altered in one is
// found and named. Logs come from the test world of tests/support, which knows
// nothing of files and replays.
#include "sim/replay/replay.hpp"

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_world.hpp"
#include "traces/log_file.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using Catch::Matchers::ContainsSubstring;

namespace {

using records = std::vector<logged_step>;

engine_config small_pool(policy_kind policy = policy_kind::continuous) {
  engine_config c;
  c.policy = policy;
  c.block_size = token_count{4};
  c.num_blocks = block_count{12};
  c.max_model_len = token_count{40};
  c.max_num_seqs = 4;
  c.max_num_batched_tokens = token_count{12};
  c.run_ahead = 1;
  return c;
}

// A crowded little world: hits, chunks, preemptions, a cancel, a failed step, a
// wake where the policy waits, a drain with one that comes too late.
std::vector<std::vector<std::byte>> payloads_of(const engine_config& config) {
  test::fake_world world{config, {.output_keys = true}};
  for (std::uint64_t id = 1; id <= 9; ++id) {
    world.submit({.id = id,
                  .prompt = 5 + static_cast<std::int32_t>(id % 4) * 4,
                  .output = 12,
                  .max_tokens = 14,
                  .n = id == 4 ? 2 : 1,
                  .family = 1,
                  .shared = 8});
    world.complete(id == 6 ? 1 : 0);
    if (id == 5) world.cancel(3);
  }
  world.complete();
  world.fail();
  world.submit({.id = 30, .prompt = 4, .max_tokens = 2});
  world.wake();
  world.drain();
  world.submit({.id = 31, .prompt = 4, .max_tokens = 2});
  world.run();
  world.check_end();
  return world.sink.payloads;
}

records decoded(const std::vector<std::vector<std::byte>>& payloads) {
  decision_log_decoder decoder;
  records all;
  for (const auto& payload : payloads) all.push_back(decoder.decode(payload));
  return all;
}

// Writes records as a log whose hashes fit.
void write_log(const std::filesystem::path& file, const std::string& header, const records& all) {
  traces::log_file_writer writer{file};
  decision_log log{header};
  log.set_sink(writer.replica(0, header));
  for (const logged_step& record : all) {
    for (const logged_input& input : record.inputs) {
      step done;
      done.id = input.step;
      done.result = input.result;
      switch (input.kind) {
        case input_kind::submit:
          log.add_submit(input.spec, input.stamp);
          break;
        case input_kind::cancel:
          log.add_cancel(input.request, input.stamp);
          break;
        case input_kind::drain:
          log.add_drain(input.stamp);
          break;
        case input_kind::wake:
          log.add_wake(input.stamp);
          break;
        case input_kind::result:
          log.add_result(done, input.stamp);
          break;
        case input_kind::none:
          break;
      }
    }
    log.commit(record.decisions);
  }
  writer.close();
}

sim::replay_report verify(const engine_config& config, const records& all) {
  const traces::temp_file file{"", ".log"};
  write_log(file.path(), to_json(config), all);
  return sim::verify_log(file.path());
}

// Changes a record where it can, and says whether it could.
using change = std::function<bool(logged_step&)>;

// Applies a change to the first record from the sixth on that allows it.
std::uint64_t alter(records& all, const change& apply) {
  for (std::size_t i = 5; i < all.size(); ++i) {
    if (apply(all[i])) return i + 1;
  }
  FAIL("no record to alter");
  return 0;
}

template <class Change>
change in_input(input_kind kind, Change apply) {
  return [=](logged_step& record) {
    for (logged_input& input : record.inputs) {
      if (input.kind == kind && apply(input)) return true;
    }
    return false;
  };
}

template <class Entry, class Change>
change in_entry(std::vector<Entry> decision_record::*list, Change apply) {
  return [=](logged_step& record) {
    auto& entries = record.decisions.*list;
    if (entries.empty()) return false;
    apply(entries.front());
    return true;
  };
}

template <class Number>
change raised(Number decision_record::*field) {
  return [=](logged_step& record) {
    record.decisions.*field = Number{(record.decisions.*field).raw() + 1};
    return true;
  };
}

struct alteration {
  const char* field;
  change apply;
};

std::vector<alteration> altered_decisions() {
  using record = decision_record;
  const token_count one{1};
  return {
      {"step", raised(&record::step)},
      {"now", raised(&record::now)},
      {"budget", raised(&record::budget)},
      {"free", raised(&record::free)},
      {"used", raised(&record::used)},
      {"behind", [](logged_step& r) { return ++r.decisions.behind > 0; }},
      {"ran[0].tokens", in_entry(&record::ran, [=](auto& e) { e.tokens += one; })},
      {"ran[0].padding", in_entry(&record::ran, [=](auto& e) { e.padding += one; })},
      {"ran[0].decode", in_entry(&record::ran, [](auto& e) { e.decode = !e.decode; })},
      {"ran[0].sample", in_entry(&record::ran, [](auto& e) { ++e.who.sample; })},
      {"admitted[0].hit_tokens",
       in_entry(&record::admitted, [=](auto& e) { e.hit_tokens += one; })},
      {"admitted[0].reason",
       in_entry(&record::admitted, [](auto& e) { e.why = reason::rejected_invalid; })},
      {"preempted[0].victim.request",
       in_entry(&record::preempted, [](auto& e) { e.victim.request = request_id{77}; })},
      {"preempted[0].requester.request",
       in_entry(&record::preempted, [](auto& e) { e.requester.request = request_id{77}; })},
      {"finished[0].reason",
       in_entry(&record::finished, [](auto& e) { e.why = reason::finished_error; })},
      {"held[0].a", in_entry(&record::held, [](auto& e) { ++e.a; })},
      {"held[0].b", in_entry(&record::held, [](auto& e) { ++e.b; })},
      {"held[0].request",
       [](logged_step& r) {
         if (r.decisions.held.size() != 1) return false;
         r.decisions.held.clear();
         return true;
       }},
      {"finished[0].request",
       [](logged_step& r) {
         if (!r.decisions.finished.empty()) return false;
         r.decisions.finished.push_back({{request_id{1}, 0}, reason::finished_eos, 0, 0});
         return true;
       }},
  };
}

}  // namespace

TEST_CASE("replay: the logs of all policies verify, and written anew have the same bytes") {
  const auto policy = GENERATE(policy_kind::continuous, policy_kind::prefill_first,
                               policy_kind::reserve, policy_kind::static_batch);
  const engine_config config = small_pool(policy);
  const auto payloads = payloads_of(config);
  const traces::temp_file file{"", ".log"};
  write_log(file.path(), to_json(config), decoded(payloads));
  const auto entries = traces::read_log(file.path());
  REQUIRE(entries.size() == payloads.size() + 1);
  for (std::size_t i = 0; i < payloads.size(); ++i) CHECK(entries[i + 1].bytes == payloads[i]);
  const sim::replay_report report = sim::verify_log(file.path());
  if (report.difference) FAIL(sim::describe(*report.difference));
  CHECK(report.records == payloads.size());
  CHECK(report.replicas == 1);
}

TEST_CASE("replay: each altered decision is named by its record, step and field") {
  const engine_config config = small_pool();
  const records original = decoded(payloads_of(config));
  for (const alteration& what : altered_decisions()) {
    INFO(what.field);
    records all = original;
    const std::uint64_t record = alter(all, what.apply);
    const sim::replay_report report = verify(config, all);
    REQUIRE(report.difference.has_value());
    INFO(sim::describe(*report.difference));
    CHECK(report.difference->field == what.field);
    CHECK(report.difference->record == record);
    CHECK(report.difference->step == all[record - 1].decisions.step);
    CHECK(report.difference->logged != report.difference->replayed);
    CHECK_FALSE(report.difference->chain_broken);
  }
}

TEST_CASE("replay: each altered input is found where it first changes a decision") {
  const engine_config config = small_pool();
  const records original = decoded(payloads_of(config));
  const std::vector<std::pair<const char*, change>> changes{
      {"one token allowed",
       in_input(input_kind::submit,
                [](logged_input& i) { return (i.spec.max_tokens = token_count{1}).raw() > 0; })},
      {"a longer prompt", in_input(input_kind::submit,
                                   [](logged_input& i) {
                                     return (i.spec.prompt_tokens += token_count{1}).raw() > 0;
                                   })},
      {"one more sample",
       in_input(input_kind::submit, [](logged_input& i) { return ++i.spec.n > 1; })},
      {"another's prefix", in_input(input_kind::submit,
                                    [](logged_input& i) {
                                      if (i.spec.keys.empty()) return false;
                                      i.spec.keys[0] = {1, 2};
                                      return true;
                                    })},
      {"a cancel of somebody else",
       in_input(input_kind::cancel,
                [](logged_input& i) { return (i.request = request_id{1}).raw() > 0; })},
      {"a text that did not end", in_input(input_kind::result,
                                           [](logged_input& i) {
                                             const bool had = !i.result.finishes.empty();
                                             i.result.finishes.clear();
                                             return had;
                                           })},
      {"an end for another reason", in_input(input_kind::result,
                                             [](logged_input& i) {
                                               if (i.result.finishes.empty()) return false;
                                               i.result.finishes[0].kind = finish_kind::error;
                                               return true;
                                             })},
      {"a step that failed", in_input(input_kind::result,
                                      [](logged_input& i) {
                                        i.result.status = step_status::failed;
                                        return true;
                                      })},
      {"no drain",
       [](logged_step& r) {
         return std::erase_if(r.inputs, [](auto& i) { return i.kind == input_kind::drain; }) > 0;
       }},
      {"a later result",
       in_input(input_kind::result,
                [](logged_input& i) { return (i.stamp += micros{1}).raw() > 0; })},
  };
  for (const auto& [name, apply] : changes) {
    INFO(name);
    records all = original;
    const std::uint64_t record = alter(all, apply);
    const sim::replay_report report = verify(config, all);
    REQUIRE(report.difference.has_value());
    INFO(sim::describe(*report.difference));
    CHECK(report.difference->record >= record);
    CHECK(report.difference->step > step_id{0});
    CHECK(report.difference->field != "record");
    CHECK(report.difference->field != "hash");
  }
}

TEST_CASE("replay: a record too many, too few or in another order is found") {
  const engine_config config = small_pool();
  const records original = decoded(payloads_of(config));
  records all = original;
  SECTION("one is left out") {
    all.erase(all.begin() + 7);
  }
  SECTION("one is there twice") {
    all.insert(all.begin() + 7, all[7]);
  }
  SECTION("two have changed places") {
    std::swap(all[7], all[8]);
  }
  const sim::replay_report report = verify(config, all);
  REQUIRE(report.difference.has_value());
  CHECK(report.difference->record >= 8);
  CHECK(report.difference->record <= 9);
}

TEST_CASE("replay: inputs that no engine was given are named, not followed") {
  const engine_config config = small_pool();
  records all = decoded(payloads_of(config));
  SECTION("a result of a step that does not run") {
    const std::uint64_t record = alter(all, in_input(input_kind::result, [](logged_input& i) {
                                         return (i.step = step_id{999}).raw() > 0;
                                       }));
    const auto report = verify(config, all);
    REQUIRE(report.difference.has_value());
    CHECK(report.difference->record == record);
    CHECK_THAT(report.difference->field, ContainsSubstring("inputs[0].step"));
    CHECK(report.difference->logged == "999");
  }
  SECTION("a moment that cannot be") {
    alter(all, in_input(input_kind::result,
                        [](logged_input& i) { return (i.stamp = micros::max()).raw() > 0; }));
    const auto report = verify(config, all);
    REQUIRE(report.difference.has_value());
    CHECK(report.difference->field == "inputs[0].stamp");
  }
  SECTION("finishes of work that was not done") {
    alter(all, in_input(input_kind::result, [](logged_input& i) {
            i.result.finishes.assign(3, {4'000'000, 9, finish_kind::eos});
            i.result.output_keys.assign(3, {4'000'000, block_key{1, 2}});
            return true;
          }));
    CHECK_NOTHROW(verify(config, all));
  }
}

TEST_CASE("replay: a changed byte without a repaired hash is reported with what it changed") {
  const engine_config config = small_pool();
  const traces::temp_file file{"", ".log"};
  const auto payloads = payloads_of(config);
  write_log(file.path(), to_json(config), decoded(payloads));
  std::string bytes = traces::contents_of(file.path());
  const std::string needle{reinterpret_cast<const char*>(payloads[8].data()), payloads[8].size()};
  const auto at = bytes.find(needle);
  REQUIRE(at != std::string::npos);
  SECTION("in the decisions") {
    bytes[at + needle.size() - 1] ^= 1;  // used blocks
    file.rewrite(bytes);
    const auto report = sim::verify_log(file.path());
    REQUIRE(report.difference.has_value());
    CHECK(report.difference->record == 9);
    CHECK(report.difference->field == "used");
    CHECK(report.difference->chain_broken);
    CHECK_THAT(sim::describe(*report.difference), ContainsSubstring("the file was altered"));
  }
  SECTION("in the hash itself") {
    bytes[at + needle.size()] ^= 1;
    file.rewrite(bytes);
    const auto report = sim::verify_log(file.path());
    REQUIRE(report.difference.has_value());
    CHECK(report.difference->record == 9);
    CHECK(report.difference->field == "hash");
  }
}

TEST_CASE("replay: every flipped bit of a log is found and none crashes it") {
  const engine_config config = small_pool();
  const traces::temp_file file{"", ".log"};
  write_log(file.path(), to_json(config), decoded(payloads_of(config)));
  const std::string original = traces::contents_of(file.path());
  std::ostringstream out;
  std::ostringstream err;
  for (std::size_t i = 0; i < original.size(); i += 3) {
    std::string bytes = original;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
    file.rewrite(bytes);
    INFO("byte " << i);
    CHECK(sim::replay_command(file.path(), true, out, err) != 0);
  }
}

TEST_CASE("replay: the command's words and exit codes") {
  const engine_config config = small_pool();
  const traces::temp_file file{"", ".log"};
  const records original = decoded(payloads_of(config));
  std::ostringstream out;
  std::ostringstream err;
  SECTION("equal") {
    write_log(file.path(), to_json(config), original);
    CHECK(sim::replay_command(file.path(), true, out, err) == 0);
    CHECK_THAT(out.str(), ContainsSubstring(std::to_string(original.size()) +
                                            " records of 1 replica replayed: all bytes equal"));
    CHECK(err.str().empty());
  }
  SECTION("different") {
    records all = original;
    alter(all, raised(&decision_record::free));
    write_log(file.path(), to_json(config), all);
    CHECK(sim::replay_command(file.path(), true, out, err) == 1);
    CHECK_THAT(out.str(), ContainsSubstring("record 6") && ContainsSubstring("free differs"));
  }
  SECTION("no log") {
    file.rewrite("hello");
    CHECK(sim::replay_command(file.path(), true, out, err) == 2);
    CHECK_THAT(err.str(), ContainsSubstring("is no decision log"));
    CHECK(sim::replay_command("no/such/file.log", true, out, err) == 2);
  }
  SECTION("a header that is none") {
    write_log(file.path(), R"({"policy":"fifo"})", original);
    CHECK(sim::replay_command(file.path(), true, out, err) == 2);
    CHECK_THAT(err.str(), ContainsSubstring("replica 0") && ContainsSubstring("fifo"));
  }
  SECTION("cut short") {
    write_log(file.path(), to_json(config), original);
    const std::string bytes = traces::contents_of(file.path());
    file.rewrite(bytes.substr(0, bytes.size() - 3));
    CHECK(sim::replay_command(file.path(), true, out, err) == 2);
    CHECK_THAT(err.str(), ContainsSubstring("cannot be read"));
  }
}

TEST_CASE("replay: as JSON lines a log says who ran and why others waited") {
  const engine_config config = small_pool();
  const traces::temp_file file{"", ".log"};
  const records original = decoded(payloads_of(config));
  write_log(file.path(), to_json(config), original);
  std::stringstream out;
  std::ostringstream err;
  REQUIRE(sim::replay_command(file.path(), false, out, err) == 0);
  std::string line;
  REQUIRE(std::getline(out, line));
  CHECK(nlohmann::json::parse(line)["header"]["num_blocks"] == 12);
  for (std::size_t i = 0; i < original.size(); ++i) {
    REQUIRE(std::getline(out, line));
    const auto json = nlohmann::json::parse(line);
    const decision_record& d = original[i].decisions;
    CHECK(json["record"] == i + 1);
    CHECK(json["step"] == d.step.raw());
    CHECK(json["inputs"].size() == original[i].inputs.size());
    CHECK(json["ran"].size() == d.ran.size());
    CHECK(json["free"] == d.free.raw());
    for (std::size_t k = 0; k < d.held.size(); ++k) {
      CHECK(json["held"][k]["reason"] == to_string(d.held[k].why));
      CHECK(json["held"][k]["sentence"] == sentence(d.held[k].why, d.held[k].a, d.held[k].b));
    }
  }
  CHECK_FALSE(std::getline(out, line));
}
