// The program as a user meets it: exit codes, messages that name the flag and
// what is allowed, files, lists.
#include "sim/cli/command.hpp"

#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/sim_runs.hpp"

using namespace octavo;
using Catch::Matchers::ContainsSubstring;
using test::json_of_sim;
using test::run_sim;
using test::sim_result;
using test::operator+;

namespace {

using arguments = std::vector<std::string>;

const traces::temp_file& small_trace() {
  static const traces::temp_file file{
      "{\"format\":\"octavo.trace/1\"}\n"
      "{\"id\":\"a\",\"arrival_s\":0,\"prompt_tokens\":20,\"output_tokens\":3}\n"
      "{\"id\":\"b\",\"arrival_s\":1,\"prompt_tokens\":40,\"output_tokens\":2}\n",
      ".jsonl"};
  return file;
}

arguments trace_flag() {
  return {"--trace", small_trace().path().string()};
}

// Priced by hand, without model or GPU.
arguments flat_run() {
  return trace_flag() + arguments{"--step-time", "100ms", "--num-gpu-blocks-override", "100"};
}

arguments h100_run() {
  return trace_flag() + arguments{"--model", "llama-3.1-8b", "--gpu", "h100"};
}

struct bad_value {
  arguments flags;
  /// Texts that the message must hold: the flag, what is allowed.
  arguments said;
};

void check_refused(const arguments& base, const std::vector<bad_value>& all) {
  for (const bad_value& bad : all) {
    const sim_result run = run_sim(base + bad.flags);
    INFO(bad.flags[0] << ' ' << (bad.flags.size() > 1 ? bad.flags[1] : "") << ": " << run.err);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    for (const std::string& text : bad.said) CHECK_THAT(run.err, ContainsSubstring(text));
  }
}

}  // namespace

TEST_CASE("a run reports and exits with 0; a quiet one prints nothing") {
  const sim_result loud = run_sim(flat_run());
  CHECK(loud.code == 0);
  CHECK_THAT(loud.out, ContainsSubstring("2 completed"));
  const sim_result quiet = run_sim(flat_run() + arguments{"--quiet"});
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
  CHECK(quiet.err.empty());
}

TEST_CASE("a capacity beyond what a short trace completes says that the trace is short") {
  const sim_result found = run_sim(flat_run() + arguments{"--find-capacity"});
  CHECK(found.code == 0);
  CHECK_THAT(found.out, ContainsSubstring("The trace is too short"));
}

TEST_CASE("numbers that cannot be used are refused with flag and range") {
  check_refused(
      flat_run(),
      {{{"--max-num-seqs", "0"}, {"--max-num-seqs", "1 to"}},
       {{"--max-num-seqs", "-3"}, {"--max-num-seqs", "1 to"}},
       {{"--max-num-seqs", "9999999999"}, {"--max-num-seqs", "1 to"}},
       {{"--block-size", "0"}, {"--block-size", "1 to"}},
       {{"--max-num-batched-tokens", "-1"}, {"--max-num-batched-tokens"}},
       {{"--max-num-batched-tokens", "100"}, {"max-num-batched-tokens", "max-num-seqs (256)"}},
       {{"--num-gpu-blocks-override", "-5"}, {"--num-gpu-blocks-override", "0 to"}},
       {{"--num-gpu-blocks-override", "99999999999"}, {"--num-gpu-blocks-override", "0 to"}},
       {{"--num-gpu-blocks-override", "0"}, {"--num-gpu-blocks-override is needed"}},
       {{"--watermark", "-1"}, {"--watermark", "0 to"}},
       {{"--max-preemptions", "-1"}, {"--max-preemptions"}},
       {{"--max-num-queued-reqs", "-1"}, {"max-num-queued-reqs", "at least 0"}},
       {{"--max-num-queued-tokens", "-1"}, {"max-num-queued-tokens", "at least 0"}},
       {{"--long-prefill-token-threshold", "-1"}, {"--long-prefill-token-threshold"}},
       {{"--max-model-len", "long"}, {"--max-model-len", "auto", "from 1"}},
       {{"--max-model-len", "1"}, {"--max-model-len", "2 to"}},
       {{"--max-model-len", "99999999999"}, {"--max-model-len"}},
       {{"--rate-scale", "0"}, {"--rate-scale", "above 0"}},
       {{"--rate-scale", "-2"}, {"--rate-scale", "above 0"}},
       {{"--rate-scale", "nan"}, {"--rate-scale", "above 0"}},
       {{"--rate-scale", "inf"}, {"--rate-scale", "above 0"}},
       {{"--requests", "-1"}, {"--requests", "0 to"}},
       {{"--concurrency", "-1"}, {"--concurrency", "0 to"}},
       {{"--warmup", "-1"}, {"--warmup", "0 to"}},
       {{"--seed", "1.5"}, {"--seed", "number"}},
       {{"--slo-percentile", "nan"}, {"--slo-percentile", "1 to 100"}},
       {{"--slo-percentile", "0"}, {"--slo-percentile", "1.0"}},
       {{"--gpu-memory-utilization", "1.5"}, {"--gpu-memory-utilization", "at most 1"}},
       {{"--gpu-memory-utilization", "nan"}, {"--gpu-memory-utilization", "at most 1"}},
       {{"--assume-max-tokens", "0"}, {"--assume-max-tokens", "context, exact or a number"}},
       {{"--assume-max-tokens", "many"}, {"--assume-max-tokens", "context, exact or a number"}},
       {{"--no-enable-chunked-prefill", "--max-num-batched-tokens", "300", "--max-model-len",
         "400"},
        {"max-num-batched-tokens", "max-model-len (400)"}}});
}

TEST_CASE("durations that cannot be used are refused with flag and form") {
  check_refused(flat_run(), {{{"--step-time", "0ms"}, {"--step-time", "above 0"}},
                             {{"--step-time", "quick"}, {"--step-time", "50ms"}},
                             {{"--step-time", "-1ms"}, {"--step-time", "50ms"}},
                             {{"--slo-ttft", "0"}, {"--slo-ttft", "above 0"}},
                             {{"--slo-ttft", "nan"}, {"--slo-ttft", "50ms"}},
                             {{"--slo-tpot", "2 weeks"}, {"--slo-tpot", "50ms"}},
                             {{"--static-max-wait", "-5s"}, {"--static-max-wait", "50ms"}},
                             {{"--host-time", "1ms"}, {"--host-time", "--step-time"}}});
}

TEST_CASE("names that are not known are refused with the known ones") {
  check_refused(flat_run(),
                {{{"--policy", "greedy"}, {"policy", "continuous, prefill_first, reserve, static"}},
                 {{"--kv-layout", "flat"}, {"kv-layout", "paged, contiguous"}},
                 {{"--scheduling-policy", "lifo"}, {"fcfs, priority, shortest_first"}},
                 {{"--router", "random"}, {"router", "round_robin, least_loaded, prefix_affinity"}},
                 {{"--quantization", "int3"}, {"--quantization", "fp8", "awq"}},
                 {{"--kv-cache-dtype", "int3"}, {"--kv-cache-dtype", "fp8"}},
                 {{"--bogus"}, {"--bogus", "--help"}}});
  check_refused(trace_flag(), {{{"--model", "gpt-9", "--gpu", "h100"}, {"gpt-9", "llama-3.1-8b"}},
                               {{"--model", "llama-3.1-8b", "--gpu", "h9"}, {"h9", "rtx-4090"}},
                               {{"--kv-table", "gpt-9"}, {"gpt-9", "llama-3.1-8b"}}});
}

TEST_CASE("flags that need each other, or exclude each other, say so") {
  check_refused(trace_flag(), {{{"--gpu", "h100"}, {"--model and --gpu"}},
                               {{"--model", "llama-3.1-8b"}, {"--model and --gpu"}},
                               {{"--quiet"}, {"--model and --gpu", "--step-time"}},
                               {{"--step-time", "1ms"}, {"--num-gpu-blocks-override"}}});
  // A model beside --step-time must not be ignored.
  check_refused(flat_run(), {{{"--model", "llama-3.1-8b"}, {"--model and --gpu"}},
                             {{"--profile", "measured.json"}, {"--profile"}}});
  check_refused({}, {{{"--quiet"}, {"--trace"}}});
}

TEST_CASE("files that are absent, empty, folders or no trace are refused by name") {
  const std::string folder = std::filesystem::temp_directory_path().string();
  const traces::temp_file empty;
  const traces::temp_file prose{"Once upon a time.\n"};
  const arguments priced{"--step-time", "100ms", "--num-gpu-blocks-override", "100"};
  check_refused(priced,
                {{{"--trace", "/no/such/trace.csv"}, {"/no/such/trace.csv"}},
                 {{"--trace", folder}, {folder, "folder"}},
                 {{"--trace", empty.path().string()}, {empty.path().string(), "empty"}},
                 {{"--trace", prose.path().string()}, {prose.path().string(), "octavo.trace/1"}}});
  check_refused(h100_run(), {{{"--profile", "/no/such/profile"}, {"/no/such/profile"}},
                             {{"--profile", folder}, {"--profile", "folder"}},
                             {{"--profile", prose.path().string()}, {prose.path().string()}}});
  check_refused(trace_flag(), {{{"--model", folder, "--gpu", "h100"}, {folder}},
                               {{"--model", "llama-3.1-8b", "--gpu", folder}, {folder}}});
}

TEST_CASE("files that cannot be written are refused by name") {
  for (const auto* flag : {"--out-json", "--out-csv", "--decision-log"}) {
    const sim_result run = run_sim(flat_run() + arguments{flag, "/no/such/folder/file"});
    INFO(flag);
    CHECK(run.code == 2);
    CHECK_THAT(run.err, ContainsSubstring("/no/such/folder/file"));
  }
}

TEST_CASE("what cannot work exits with 3 and shows the arithmetic") {
  const sim_result memory =
      run_sim(trace_flag() + arguments{"--model", "llama-3.1-70b", "--gpu", "h100"});
  CHECK(memory.code == 3);
  // 70.55 billion parameters of two bytes.
  CHECK_THAT(memory.err, ContainsSubstring("infeasible") && ContainsSubstring("x 0.92") &&
                             ContainsSubstring("141.11 GB weights"));
  const sim_result heads = run_sim(h100_run() + arguments{"--tp", "3"});
  CHECK(heads.code == 3);
  CHECK_THAT(heads.err, ContainsSubstring("32") && ContainsSubstring("3"));
}

TEST_CASE("lists and tables are printed and exit with 0") {
  const sim_result gpus = run_sim({"--list-gpus"});
  CHECK(gpus.code == 0);
  CHECK_THAT(gpus.out, ContainsSubstring("rtx-4090") && ContainsSubstring("h100"));
  const sim_result models = run_sim({"--list-models"});
  CHECK(models.code == 0);
  CHECK_THAT(models.out, ContainsSubstring("llama-2-7b"));
  const sim_result table = run_sim({"--kv-table", "llama-3.1-8b"});
  CHECK(table.code == 0);
  // 2 x 32 layers x 8 heads x 128 x 2 bytes.
  CHECK_THAT(table.out, ContainsSubstring("131072"));
  const sim_result help = run_sim({"--help"});
  CHECK(help.code == 0);
  CHECK_THAT(help.out, ContainsSubstring("--trace"));
}

TEST_CASE("the files of a run hold what was run, and the hash is null where not kept") {
  const auto report = json_of_sim(flat_run() + arguments{"--seed", "7", "--max-num-seqs", "9"});
  CHECK(report["cost_source"] == "constant (100 ms a step)");
  CHECK(report["requests"]["completed"] == 2);
  CHECK(report["ttft_s"]["max"].get<double>() == Catch::Approx(0.1));
  CHECK(report["e2e_s"]["max"].get<double>() == Catch::Approx(0.3));
  CHECK(report["steps"] == 5);
  CHECK(report["config"]["seed"] == 7);
  CHECK(report["config"]["max_num_seqs"] == 9);
  CHECK(report["config"]["assume_max_tokens"] == "context");
  CHECK(report["decision_log_hash"].get<std::string>().size() == 32);
  CHECK(json_of_sim(flat_run() + arguments{"--no-decision-log"})["decision_log_hash"].is_null());
  const traces::temp_file csv;
  CHECK(run_sim(flat_run() + arguments{"-q", "--out-csv", csv.path().string()}).code == 0);
  CHECK_THAT(traces::contents_of(csv.path()),
             ContainsSubstring("\na,0.000000,20,3,0,0.000000,0.100000,0.100000000,0.300000,0,0,"));
}

TEST_CASE("the same command gives the same bytes") {
  const auto files = [] {
    const traces::temp_file csv;
    auto report = json_of_sim(h100_run() + arguments{"--out-csv", csv.path().string()});
    report.erase("wall_s");
    return report.dump() + traces::contents_of(csv.path());
  };
  const std::string once = files();
  CHECK(files() == once);
}

TEST_CASE("the length that the engine takes: fitted to memory with a note, or as given") {
  const auto fitted =
      json_of_sim(trace_flag() + arguments{"--model", "llama-3.1-8b", "--gpu", "h100",
                                           "--num-gpu-blocks-override", "1000"});
  CHECK(fitted["config"]["max_model_len"] == 16'000);
  CHECK_THAT(fitted["config"]["notes"].dump(), ContainsSubstring("16000"));
  const auto model = json_of_sim(h100_run());
  CHECK(model["config"]["max_model_len"] == 131'072);
  CHECK(json_of_sim(h100_run() + arguments{"--max-model-len", "500"})["config"]["max_model_len"] ==
        500);
}

TEST_CASE("a budget that is not given follows from chunking and seats") {
  const auto budget = [](const arguments& flags) {
    return json_of_sim(flat_run() + flags)["config"]["max_num_batched_tokens"].get<int>();
  };
  CHECK(budget({}) == 2048);
  CHECK(budget({"--max-num-seqs", "3000"}) == 3000);
  // 100 blocks of 64 hold 6,400 tokens, which must fit in one step.
  CHECK(budget({"--no-enable-chunked-prefill", "--block-size", "64"}) == 6400);
}

TEST_CASE("a fleet's GPUs and price count all replicas and their parts") {
  const auto fleet = json_of_sim(h100_run() + arguments{"--replicas", "3", "--tp", "2"});
  CHECK(fleet["config"]["gpus"] == 6);
  CHECK(json_of_sim(flat_run() + arguments{"--replicas", "3"})["config"]["gpus"] == 3);
}

TEST_CASE("flags that the others make meaningless are refused, not ignored") {
  check_refused(flat_run(), {{{"--verify"}, {"--verify", "--replay"}},
                             {{"--find-capacity", "--find-min-gpus"}, {"--find-min-gpus"}},
                             {{"--vary", "seed=1,2", "--decision-log", "x"}, {"--decision-log"}},
                             {{"--find-capacity", "--chrome-trace", "x"}, {"--chrome-trace"}},
                             {{"--vary", "seed=1,2", "--timeline"}, {"--timeline"}},
                             {{"--vary", "seed=1,2", "--explain", "a"}, {"--explain"}},
                             {{"--timeline", "--out-json", "x"}, {"--out-json"}},
                             {{"--explain", "a", "--out-csv", "x"}, {"--out-csv"}}});
}

TEST_CASE("a decision log that a run wrote verifies, and one that was altered does not") {
  const traces::temp_file log{"", ".log"};
  const std::string path = log.path().string();
  for (const auto* replicas : {"1", "2"}) {
    REQUIRE(run_sim(flat_run() + arguments{"-q", "--replicas", replicas, "--decision-log", path})
                .code == 0);
    const sim_result good = run_sim({"--replay", path, "--verify"});
    CHECK(good.code == 0);
    CHECK_THAT(good.out, ContainsSubstring("all bytes equal"));
  }
  CHECK(run_sim({"--replay", "/no/such/log", "--verify"}).code == 2);
  std::string bytes = traces::contents_of(log.path());
  bytes[bytes.size() - 20] = static_cast<char>(bytes[bytes.size() - 20] ^ 1);
  log.rewrite(bytes);
  CHECK(run_sim({"--replay", path, "--verify"}).code != 0);
}

TEST_CASE("a request is explained by name or number, and one that is not there is refused") {
  const sim_result named = run_sim(flat_run() + arguments{"--explain", "b"});
  CHECK(named.code == 0);
  CHECK_FALSE(named.out.empty());
  CHECK(run_sim(flat_run() + arguments{"--explain", "1"}).out == named.out);
  check_refused(flat_run(),
                {{{"--explain", "nobody"}, {"--explain", "nobody"}}, {{"--explain", "2"}, {"2"}}});
}
