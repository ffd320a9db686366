// The catalogue: published figures, names, files of the user's own, printed lists.
#include "sim/catalogue/catalogue.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"
#include "sim/catalogue/embedded.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("catalogue models have their published parameter counts") {
  CHECK(find_model("llama-2-7b").parameters() == 6'738'415'616);
  CHECK(find_model("llama-2-70b").parameters() == 68'976'648'192);
  CHECK(find_model("llama-3.1-8b").parameters() == 8'030'261'248);
  CHECK(find_model("llama-3.1-70b").parameters() == 70'553'706'496);
  CHECK(find_model("qwen2.5-7b").parameters() == 7'615'616'512);
  CHECK(find_model("qwen2.5-72b").parameters() == 72'706'203'648);
  CHECK(find_model("qwen3-8b").parameters() == 8'190'735'360);
  CHECK(find_model("qwen3-32b").parameters() == 32'762'123'264);
  CHECK(find_model("mistral-7b").parameters() == 7'248'023'552);
  CHECK(find_model("gemma-3-27b").parameters() == 27'009'346'304);
  CHECK(find_model("smollm2-135m").parameters() == 134'515'008);
}

TEST_CASE("every embedded file can be read under its own name") {
  int gpus = 0;
  int models = 0;
  for (const embedded_file& file : embedded_files()) {
    const std::string name = std::filesystem::path{file.path}.stem().string();
    if (file.path.starts_with("gpus/")) {
      CHECK(find_gpu(name).name == name);
      ++gpus;
    } else {
      CHECK(find_model(name).name == name);
      CHECK(find_model(name).notes.empty());
      ++models;
    }
  }
  CHECK(gpus == 11);
  CHECK(models == 11);
}

TEST_CASE("every figure of a GPU names its source") {
  for (const embedded_file& file : embedded_files()) {
    if (!file.path.starts_with("gpus/")) continue;
    const auto document = nlohmann::json::parse(file.text);
    for (const auto& [key, value] : document.items()) {
      if (value.is_number()) FAIL(std::string{file.path} + ": " + key + " has no source");
      if (value.is_object() && value.contains("value")) CHECK(value.contains("source"));
    }
    CHECK(document.at("efficiency").contains("source"));
    CHECK(document.at("link").at("gb_per_s_per_direction").contains("source"));
  }
}

TEST_CASE("a GPU has its datasheet's figures in base units") {
  const gpu_spec gpu = find_gpu("h100");
  CHECK(gpu.fp16_flops == 989.4e12);
  CHECK(gpu.bandwidth == 3350e9);
  CHECK(gpu.link_bandwidth == 450e9);
  CHECK(find_gpu("a100-80g").fp8_flops == 0);
  CHECK(find_gpu("rtx-4090").memory_bytes == 25'250'627'584);
}

TEST_CASE("an unknown name lists what is known") {
  CHECK_THROWS_WITH(find_gpu("h1000"), ContainsSubstring("unknown GPU \"h1000\"") &&
                                           ContainsSubstring("a100-40g") &&
                                           ContainsSubstring("rtx-pro-6000"));
  CHECK_THROWS_WITH(find_model("gpt-9"), ContainsSubstring("llama-3.1-8b"));
  CHECK_THROWS_AS(find_model(""), input_error);
}

TEST_CASE("a user's own files are read by path") {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("octavo-catalogue-test-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string gpu_path = (folder / "mine.json").string();
  std::ofstream{gpu_path} << R"({"format":"octavo.gpu/1","name":"mine","processors":10,
    "peak_fp16_tflops":{"value":5,"source":"me"},"memory_bytes":1000000000,
    "bandwidth_gb_per_s":100,"link":{"kind":"none","gb_per_s_per_direction":1,"latency_us":5}})";
  CHECK(find_gpu(gpu_path).fp16_flops == 5e12);
  std::ofstream{folder / "config.json"} << R"({"model_type":"llama","hidden_size":64,
    "num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":128,"vocab_size":100,
    "max_position_embeddings":64})";
  CHECK(find_model(folder.string()).layers == 2);
  CHECK(find_model((folder / "config.json").string()).layers == 2);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a GPU file that cannot be used is refused by field") {
  CHECK_THROWS_WITH(parse_gpu("[]", "g.json"), ContainsSubstring("g.json: a JSON object"));
  CHECK_THROWS_WITH(parse_gpu("{}", "g.json"), ContainsSubstring("\"format\""));
  const std::string start = R"({"format":"octavo.gpu/1","name":"g","processors":)";
  CHECK_THROWS_WITH(parse_gpu(start + "0}", "g"), ContainsSubstring("must be above 0"));
  CHECK_THROWS_WITH(parse_gpu(start + "\"many\"}", "g"), ContainsSubstring("must be a number"));
  CHECK_THROWS_WITH(parse_gpu(start + "4}", "g"),
                    ContainsSubstring("\"peak_fp16_tflops\" is missing"));
}

TEST_CASE("lists and the KV table print what was asked for") {
  std::ostringstream gpus;
  list_gpus(gpus);
  CHECK_THAT(gpus.str(), ContainsSubstring("mi300x") && ContainsSubstring("cpu-generic"));
  std::ostringstream models;
  list_models(models);
  CHECK_THAT(models.str(),
             ContainsSubstring("8030261248") && ContainsSubstring("1024 in 52 layers"));
  std::ostringstream table;
  kv_table(find_model("llama-3.1-8b"), table);
  // 131,072 bytes a token: 8,192 tokens are 1.074 GB, 131,072 tokens 17.180 GB.
  CHECK_THAT(table.str(), ContainsSubstring("131072") && ContainsSubstring("1.074") &&
                              ContainsSubstring("17.180") && ContainsSubstring("8.590"));
}
