// Sets of requests to measure with: see bench_workload.hpp.
#include "programs/octavo/bench_workload.hpp"

#include <fstream>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/sampling/sampler.hpp"

namespace octavo {
namespace {

constexpr std::int32_t tokens_max = 1 << 24;

// Draws `count` tokens of stream `stream`.
std::vector<token_id> draw(std::uint64_t stream, std::int32_t count, std::int32_t vocabulary) {
  std::vector<token_id> tokens;
  for (std::int32_t i = 0; i < count; ++i) {
    const double u = model::uniform_at(stream, static_cast<std::uint64_t>(i));
    tokens.push_back(static_cast<token_id>(u * vocabulary));
  }
  return tokens;
}

// A number from `least` to `most`.
std::int32_t between(std::uint64_t stream, std::uint64_t i, std::int32_t least, std::int32_t most) {
  return least + static_cast<std::int32_t>(model::uniform_at(stream, i) * (most - least + 1));
}

bench_request request_from(const nlohmann::json& line) {
  bench_request r;
  r.prompt = line.at("prompt").get<std::vector<token_id>>();
  r.max_tokens = line.at("max_tokens").get<std::int32_t>();
  if (r.prompt.empty()) throw input_error("prompt: is empty");
  if (r.max_tokens < 1 || r.max_tokens > tokens_max) {
    throw input_error("max_tokens: " + std::to_string(r.max_tokens) + " is not allowed; 1 to " +
                      std::to_string(tokens_max) + " are");
  }
  return r;
}

}  // namespace

const std::vector<std::string>& bench_workload_names() {
  static const std::vector<std::string> names{"single", "prefill", "batch", "mixed"};
  return names;
}

bench_workload make_bench_workload(const std::string& name, std::int32_t streams,
                                   std::int32_t vocabulary) {
  bench_workload w{name, {}};
  if (name == "single") {
    w.requests.push_back({draw(1, 32, vocabulary), 128});
  } else if (name == "prefill") {
    w.requests.push_back({draw(2, 512, vocabulary), 1});
  } else if (name == "batch") {
    for (std::int32_t i = 0; i < streams; ++i) {
      w.requests.push_back({draw(100 + static_cast<std::uint64_t>(i), 32, vocabulary), 128});
    }
  } else if (name == "mixed") {
    const std::vector<token_id> shared = draw(3, 400, vocabulary);
    for (std::uint64_t i = 0; i < 32; ++i) {
      bench_request r{shared, between(5, i, 16, 128)};
      const auto own = draw(1000 + i, between(4, i, 16, 256), vocabulary);
      r.prompt.insert(r.prompt.end(), own.begin(), own.end());
      w.requests.push_back(std::move(r));
    }
  } else {
    throw input_error("workload: '" + name + "' is not known; single, prefill, batch, mixed are");
  }
  return w;
}

bench_workload read_bench_workload(const std::string& path) {
  std::ifstream in{path};
  if (!in) throw input_error("workload: " + path + " cannot be read");
  bench_workload w{path, {}};
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    try {
      w.requests.push_back(request_from(nlohmann::json::parse(line)));
    } catch (const std::exception& problem) {
      throw input_error("workload: " + path + ", line " + std::to_string(number) + ": " +
                        problem.what());
    }
  }
  if (w.requests.empty()) throw input_error("workload: " + path + " holds no request");
  return w;
}

}  // namespace octavo
