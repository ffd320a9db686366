// What the CPU decoder thinks of texts: tokens, and logits or log-probabilities of every position.
//
//   bench_score_text model.gguf --text a.txt --text b.txt --print-tokens > tokens.json
//   bench_score_text model.gguf --tokens tokens.json --log-probs scores.f32
//   bench_score_text model.gguf --tokens tokens.json --logits - | …
//
// Texts go through the decoder as the executor feeds it, in chunks of a prompt over
// a paged cache. bench/reference/compare_transformers.py judges the numbers.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "cpu/cpu_executor.hpp"
#include "cpu/decoder/decoder.hpp"
#include "model/generation/kv_groups.hpp"
#include "model/load_tokenizer.hpp"
#include "model/strict_json.hpp"

using namespace octavo;

namespace {

using passage = std::vector<token_id>;

struct options {
  std::string model;
  std::vector<std::string> texts;
  std::string tokens;
  std::string logits;
  std::string log_probs;
  bool print_tokens = false;
  std::int32_t chunk = 48;
  std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
};

/// A binary file of floats, or the standard output for "-".
class float_file {
 public:
  explicit float_file(const std::string& path)
      : file_(path == "-" ? stdout : std::fopen(path.c_str(), "wb")) {
    if (file_ == nullptr) throw input_error(path + ": cannot be written");
  }
  ~float_file() {
    if (file_ != stdout) std::fclose(file_);
  }
  float_file(const float_file&) = delete;
  float_file& operator=(const float_file&) = delete;

  void write(std::span<const float> values) {
    if (std::fwrite(values.data(), sizeof(float), values.size(), file_) != values.size()) {
      throw input_error("the output cannot be written");
    }
  }

 private:
  std::FILE* file_;
};

options parse(int argc, char** argv) {
  options o;
  CLI::App app{"Scores texts with the CPU decoder."};
  app.add_option("model", o.model, "a .gguf file or Hugging Face directory")->required();
  app.add_option("--text", o.texts, "a file of UTF-8 text, a passage of its own; may be repeated");
  app.add_option("--tokens", o.tokens, "a JSON file: a list of passages, each a list of token ids");
  app.add_option("--logits", o.logits,
                 "write float32 [positions, vocabulary], passage after passage; - for stdout");
  app.add_option("--log-probs", o.log_probs,
                 "write the float32 log-probability of each token but a passage's first");
  app.add_flag("--print-tokens", o.print_tokens, "print the token ids as --tokens reads them");
  app.add_option("--chunk", o.chunk, "tokens of a passage in one forward pass")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--threads", o.threads)->check(CLI::Range(1, 256))->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::ParseError& problem) {
    throw input_error(problem.what());
  }
  if (o.texts.empty() == o.tokens.empty()) throw input_error("give either --text or --tokens");
  return o;
}

std::string read_text(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw input_error(path + ": cannot be opened");
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::vector<passage> read_tokens(const std::string& path, std::int64_t vocabulary) {
  const auto document = model::load_json_file(path, std::size_t{1} << 28U);
  const std::string wanted =
      path + ": a list of lists of token ids below " + std::to_string(vocabulary) + " is expected";
  if (!document.is_array()) throw input_error(wanted);
  std::vector<passage> passages;
  for (const auto& list : document) {
    if (!list.is_array()) throw input_error(wanted);
    passages.emplace_back();
    for (const auto& id : list) {
      const bool sound = id.is_number_unsigned() &&
                         id.get<std::uint64_t>() < static_cast<std::uint64_t>(vocabulary);
      if (!sound) throw input_error(wanted + "; " + id.dump() + " was found");
      passages.back().push_back(id.get<token_id>());
    }
  }
  return passages;
}

double log_probability(std::span<const float> logits, token_id token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return logits[static_cast<std::size_t>(token)] - largest - std::log(sum);
}

/// Computes one passage at a time, from an empty cache.
class scorer {
 public:
  scorer(const options& o, const model::checkpoint& source)
      : options_(o), pool_(o.threads), weights_(cpu::load_decoder(source, pool_)) {
    if (!o.logits.empty()) logits_ = std::make_unique<float_file>(o.logits);
    if (!o.log_probs.empty()) log_probs_ = std::make_unique<float_file>(o.log_probs);
  }

  void score(const passage& tokens) {
    model::slot state;
    cpu::kv_cache cache{weights_.config, fill_tables(state, tokens.size())};
    cpu::decoder decoder{weights_, pool_, cache};
    const auto step = static_cast<std::size_t>(options_.chunk);
    for (std::size_t from = 0; from < tokens.size(); from += step) {
      const std::size_t rows = std::min(step, tokens.size() - from);
      model::decoder_batch batch;
      batch.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(from),
                          tokens.begin() + static_cast<std::ptrdiff_t>(from + rows));
      batch.sequences.push_back(
          {&state, static_cast<std::int32_t>(from), 0, static_cast<std::uint32_t>(rows)});
      for (std::uint32_t row = 0; row < rows; ++row) batch.logit_rows.push_back(row);
      write(decoder.forward(batch), tokens, from, rows);
    }
  }

 private:
  /// Gives the slot pages for so many tokens, the last block first, so that no table
  /// is the identity. Returns how many blocks there are.
  std::int32_t fill_tables(model::slot& state, std::size_t tokens) const {
    const auto pages = static_cast<std::int32_t>(tokens) / cpu::kv_cache::block_size + 1;
    const auto groups = model::engine_kv_groups(weights_.config, cpu::kv_cache::block_size);
    std::int32_t blocks = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::int32_t i = 0; i < pages * groups[g].pool_blocks; ++i) {
        state.tables[g].emplace_back(blocks++);
      }
      std::reverse(state.tables[g].begin(), state.tables[g].end());
    }
    return blocks;
  }

  void write(std::span<const float> logits, const passage& tokens, std::size_t from,
             std::size_t rows) {
    if (logits_) logits_->write(logits);
    if (!log_probs_) return;
    const auto width = static_cast<std::size_t>(weights_.config.vocab_size);
    for (std::size_t row = 0; row < rows && from + row + 1 < tokens.size(); ++row) {
      const double value =
          log_probability(logits.subspan(row * width, width), tokens[from + row + 1]);
      const auto single = static_cast<float>(value);
      log_probs_->write({&single, 1});
    }
  }

  const options& options_;
  cpu::thread_pool pool_;
  cpu::decoder_weights weights_;
  std::unique_ptr<float_file> logits_;
  std::unique_ptr<float_file> log_probs_;
};

void run(const options& o) {
  const auto source = model::checkpoint::open(o.model);
  std::vector<passage> passages;
  if (o.tokens.empty()) {
    const model::tokenizer words = model::load_tokenizer(source);
    for (const std::string& path : o.texts) passages.push_back(words.encode(read_text(path)));
  } else {
    passages = read_tokens(o.tokens, source.config().vocab_size);
  }
  if (o.print_tokens) std::printf("%s\n", nlohmann::json(passages).dump().c_str());
  if (o.logits.empty() && o.log_probs.empty()) return;
  scorer scores{o, source};
  for (const passage& tokens : passages) scores.score(tokens);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const input_error& problem) {
    std::fprintf(stderr, "score_text: %s\n", problem.what());
    return 2;
  } catch (const infeasible_error& problem) {
    std::fprintf(stderr, "score_text: %s\n", problem.what());
    return 3;
  }
  return 0;
}
