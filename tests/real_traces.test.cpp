// Published production traces, whole, where they are present: every request
// ends, and the prefix cache finds what is known to be there.
#include <filesystem>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/sim_runs.hpp"

using namespace octavo;
using test::operator+;

namespace {

using arguments = std::vector<std::string>;

// The trace's path, or nothing where it is absent.
std::string shared_trace(const std::string& name) {
  const std::string path = std::string{OCTAVO_SHARED_DIR} + "/traces/" + name;
  if (std::filesystem::exists(path)) return path;
  WARN("skipped: " << name << " is absent");
  return {};
}

void check_all_completed(const nlohmann::json& report, int submitted) {
  CHECK(report["requests"]["submitted"] == submitted);
  CHECK(report["requests"]["completed"] == submitted);
}

// Share of prompt tokens found in the cache, with memory for all of them.
double hit_rate(const std::string& trace, int submitted, const arguments& fleet) {
  const auto report =
      test::json_of_sim(arguments{"--trace", trace, "--model", "llama-3.1-8b", "--gpu", "h100",
                                  "--block-size", "512", "--num-gpu-blocks-override", "400000",
                                  "--max-model-len", "200000", "--no-decision-log"} +
                        fleet);
  check_all_completed(report, submitted);
  return report["prefix"]["hit_tokens"].get<double>() /
         report["prefix"]["query_tokens"].get<double>();
}

// Shared prefixes on one replica, and on four by two routers.
void check_reuse(const std::string& name, int submitted, double least, double most) {
  const std::string trace = shared_trace(name);
  if (trace.empty()) return;
  const double alone = hit_rate(trace, submitted, {"--replicas", "1"});
  CHECK(alone > least);
  CHECK(alone < most);
  const double in_turn = hit_rate(trace, submitted, {"--replicas", "4", "--router", "round_robin"});
  CHECK(in_turn > 0.4 * alone);
  CHECK(in_turn < 0.65 * alone);
  const double by_prefix =
      hit_rate(trace, submitted, {"--replicas", "4", "--router", "prefix_affinity"});
  CHECK(by_prefix >= 0.9 * alone);
  CHECK(by_prefix <= alone);
}

}  // namespace

TEST_CASE("Azure's conversation trace runs to its end, every request answered") {
  const std::string trace = shared_trace("AzureLLMInferenceTrace_2023_conv.csv");
  if (trace.empty()) return;
  const auto report = test::json_of_sim(
      {"--trace", trace, "--model", "llama-3.1-8b", "--gpu", "h100", "--replicas", "2"});
  check_all_completed(report, 19'366);  // lines of the file
  CHECK(report["stable"] == true);
  CHECK(report["prefix"]["hit_tokens"] == 0);  // it knows no prefixes
  CHECK(report["throughput"]["requests_per_s"].get<double>() == Catch::Approx(5.53).margin(0.02));
}

TEST_CASE("requests of Azure's trace that are longer than the model are counted, not cut") {
  const std::string trace = shared_trace("AzureLLMInferenceTrace_2023_conv.csv");
  if (trace.empty()) return;
  const auto report =
      test::json_of_sim({"--trace", trace, "--model", "llama-2-7b", "--gpu", "a100-80g",
                         "--requests", "3000", "--no-decision-log", "--replicas", "2"});
  const auto& requests = report["requests"];
  CHECK(requests["rejected"] == 217);  // lines with more than 4,096 tokens in all
  CHECK(requests["completed"] == 3000 - 217);
}

TEST_CASE(
    "Mooncake's conversations: four replicas in turn lose half the reuse, affinity keeps it") {
  check_reuse("mooncake_conversation_trace.jsonl", 12'031, 0.365, 0.380);
}

TEST_CASE(
    "Mooncake's synthetic trace: four replicas in turn lose half the reuse, affinity keeps it") {
  check_reuse("mooncake_synthetic_trace.jsonl", 3'993, 0.640, 0.660);
}
