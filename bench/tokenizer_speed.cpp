// How fast texts become tokens, and whether a hostile text takes more than its share:
//
//   bench_tokenizer_speed FOLDER
//
// FOLDER is the one that bench/reference/tokenizer_fixtures.py --speed fills; run the
// script in the same hour, on the same machine, for the reference's figures.
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"
#include "model/tokenizer/utf8.hpp"

namespace {

using octavo::model::tokenizer;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t document_characters = 4000;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> documents_of(const std::string& text) {
  std::vector<std::string> documents;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = at;
    for (std::size_t i = 0; i < document_characters && at < text.size(); ++i) {
      (void)octavo::model::read_code_point(text, at);
    }
    documents.push_back(text.substr(begin, at - begin));
  }
  return documents;
}

void time_documents(const tokenizer& words, const char* model, const char* name,
                    const std::string& text) {
  const std::vector<std::string> documents = documents_of(text);
  std::size_t tokens = 0;
  const auto start = clock_type::now();
  for (const std::string& document : documents) {
    tokens += words.encode(document, {.add_special = false, .parse_special = true}).size();
  }
  const double took = seconds_since(start);
  std::printf("octavo    %-12s %-6s %6.2f MB/s  %zu tokens\n", model, name,
              static_cast<double>(text.size()) / took / 1e6, tokens);
}

void time_hostile(const tokenizer& words, const char* model) {
  for (const char* unit : {"a", "ab", " ", "\n", "\xE2\x96\x81", "\xF0\x9F\x99\x82", "<|"}) {
    std::string text;
    while (text.size() < (std::size_t{1} << 20)) text += unit;
    const auto start = clock_type::now();
    const std::size_t tokens = words.encode(text, {.add_special = false}).size();
    std::printf("hostile   %-12s %-6s %6.3f s     %zu tokens\n", model,
                *unit == '\n' ? "\\n" : unit, seconds_since(start), tokens);
  }
}

void time_model(const std::filesystem::path& folder, const char* model) {
  const std::string json = read_file(folder / model / "tokenizer.json");
  if (json.empty()) {
    std::printf("skipped: %s/tokenizer.json absent\n", model);
    return;
  }
  const auto start = clock_type::now();
  const tokenizer words = tokenizer::from_json(json);
  std::printf("load      %-12s        %6.3f s     %zu bytes\n", model, seconds_since(start),
              json.size());
  for (const char* name : {"code", "mixed"}) {
    time_documents(words, model, name, read_file(folder / ("speed_" + std::string(name) + ".txt")));
  }
  time_hostile(words, model);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_tokenizer_speed FOLDER\n");
    return 2;
  }
  try {
    for (const char* model :
         {"llama2", "llama3", "llama3_1", "qwen3", "gemma3", "deepseek_v3", "smollm2"}) {
      time_model(argv[1], model);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
