// `octavo generate`: see generate.hpp.
#include "programs/generate.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>

#include "actors/executor_actor.hpp"
#include "actors/replica.hpp"
#include "actors/wall_clock.hpp"
#include "core/error.hpp"
#include "cpu/cpu_executor.hpp"
#include "model/container/checkpoint.hpp"
#include "model/kv_arithmetic.hpp"
#include "model/load_tokenizer.hpp"

namespace octavo {
namespace {

struct generate_options {
  std::string model;
  std::string prompt;
  std::int32_t max_tokens = 128;
  std::int32_t max_model_len = 4096;
  std::size_t threads = 0;
  bool quiet = false;
  sampling_parameters sampling;
  std::int64_t seed = -1;
};

// Returns a text to print instead of generating, or nothing.
std::optional<std::string> parse(const std::vector<std::string>& arguments, generate_options& o) {
  CLI::App app{
      "Generates text from a prompt.\n"
      "  octavo generate model.gguf --prompt \"The capital of France is\"",
      "octavo generate"};
  app.add_option("model", o.model, "a .gguf file or Hugging Face directory")->required();
  app.add_option("--prompt,-p", o.prompt, "text to continue")->required();
  app.add_option("--max-tokens,-n", o.max_tokens, "tokens to generate at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--max-model-len", o.max_model_len, "prompt and output together, at most")
      ->check(CLI::Range(2, 1'000'000))
      ->capture_default_str();
  app.add_option("--temperature", o.sampling.temperature, "0: the likeliest token, always")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--top-k", o.sampling.top_k, "only the k likeliest; 0: all");
  app.add_option("--top-p", o.sampling.top_p, "only the likeliest that come to p")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--min-p", o.sampling.min_p, "only those p times as likely as the likeliest")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--repetition-penalty", o.sampling.repetition_penalty, "1: none")
      ->check(CLI::Range(0.01, 10.0));
  app.add_option("--seed", o.seed, "the same seed gives the same text");
  app.add_option("--stop", o.sampling.stop, "text that ends the output; may be repeated");
  app.add_flag("--ignore-eos", o.sampling.ignore_eos, "go on where the model would end");
  app.add_option("--threads", o.threads, "threads of a step; 0: one for each core");
  app.add_flag("--quiet,-q", o.quiet, "the text only, no figures");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ParseError& problem) {
    throw input_error(std::string{problem.what()} + "\noctavo generate --help lists the flags.");
  }
  if (o.seed >= 0) o.sampling.seed = o.seed;
  return std::nullopt;
}

// What the terminal hears, handed from the actors to the main thread.
struct heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  std::int64_t tokens = 0;
  bool ended = false;
  finish_event end;
};

class terminal_sink : public actors::sink_actor::base {
 public:
  terminal_sink(caf::actor_config& config, std::shared_ptr<heard> to)
      : actors::sink_actor::base(config), to_(std::move(to)) {}

  behavior_type make_behavior() override {
    return {[this](actors::events_atom, const actors::event_batch_ptr& batch) {
      const std::lock_guard hold{to_->mutex};
      to_->tokens += std::ssize(batch->tokens);
      to_->text += batch->text;
      for (const finish_event& end : batch->finishes) {
        to_->ended = true;
        to_->end = end;
      }
      to_->changed.notify_one();
    }};
  }

 private:
  std::shared_ptr<heard> to_;
};

// Keys of the prompt's full blocks, so that the engine's cache can find them.
std::vector<block_key> keys_of(const std::vector<token_id>& prompt, std::size_t width) {
  const block_hasher hasher{{}};
  std::vector<block_key> keys;
  block_key key = hasher.root({});
  for (std::size_t at = 0; at + width <= prompt.size(); at += width) {
    key = hasher.chain(key, std::span{prompt}.subspan(at, width));
    keys.push_back(key);
  }
  return keys;
}

engine_config engine_of(const model::model_config& config, std::int32_t length) {
  engine_config engine;
  engine.kv_groups = cpu::kv_groups_of(config);
  engine.max_num_seqs = 8;
  engine.max_num_samples = 8;
  engine.max_num_batched_tokens = token_count{512};
  engine.max_model_len = token_count{length};
  engine.enable_prefix_caching = engine.kv_groups == std::vector{kv_group{}};
  const auto layout =
      model::make_kv_layout(config, model::kv_dtype::fp16, 1, engine.block_size.raw());
  engine.num_blocks =
      block_count{static_cast<std::int32_t>(model::pool_blocks_at(layout, length) + 64)};
  return engine;
}

// A loaded model behind the ring of actors.
class local_engine {
 public:
  local_engine(const generate_options& o, std::shared_ptr<const cpu::decoder_weights> weights,
               model::tokenizer words, std::vector<token_id> ends)
      : config_(engine_of(weights->config, o.max_model_len)),
        log_(std::make_shared<decision_log>(to_json(config_))),
        system_(caf_config_) {
    log_->disable();
    cpu::cpu_executor_options options;
    options.threads = o.threads > 0 ? o.threads : std::thread::hardware_concurrency();
    options.num_blocks = config_.num_blocks.raw();
    options.end_tokens = std::move(ends);
    options.seed = static_cast<std::uint64_t>(actors::wall_seconds() * 1e9);
    auto core = std::make_unique<cpu::cpu_executor>(std::move(weights), std::move(words),
                                                    std::move(options));
    const auto executor = system_.spawn<actors::executor_shell, caf::detached>(std::move(core));
    actors::scheduler_setup setup;
    setup.config = config_;
    setup.clock = actors::engine_clock{system_.clock().now()};
    setup.log = log_;
    ring_ = actors::spawn_replica(system_, std::move(setup), executor);
    sink_ = system_.spawn<terminal_sink>(heard_);
  }
  ~local_engine() {
    actors::stop_replica(ring_);
    caf::anon_send_exit(sink_, caf::exit_reason::user_shutdown);
  }

  void submit(std::shared_ptr<const std::vector<token_id>> prompt, const generate_options& o) {
    request_spec spec;
    spec.id = request_id{1};
    spec.prompt_tokens = token_count{static_cast<std::int32_t>(prompt->size())};
    spec.max_tokens = token_count{o.max_tokens};
    spec.keys = keys_of(*prompt, static_cast<std::size_t>(config_.block_size.raw()));
    spec.prompt = std::move(prompt);
    spec.sampling = std::make_shared<sampling_parameters>(o.sampling);
    auto batch = std::make_shared<std::vector<request_spec>>();
    batch->push_back(std::move(spec));
    caf::anon_send(ring_.scheduler, actors::submit_atom::value, actors::submit_batch{batch}, sink_);
  }

  [[nodiscard]] heard& output() { return *heard_; }

 private:
  engine_config config_;
  std::shared_ptr<decision_log> log_;
  std::shared_ptr<heard> heard_ = std::make_shared<heard>();
  caf::actor_system_config caf_config_;
  caf::actor_system system_;
  actors::replica ring_;
  actors::sink_actor sink_;
};

int stream(local_engine& engine, const generate_options& o, double start, std::ostream& out,
           std::ostream& err) {
  heard& h = engine.output();
  double first = 0;
  for (;;) {
    std::unique_lock hold{h.mutex};
    h.changed.wait(hold, [&] { return h.ended || !h.text.empty(); });
    if (first == 0) first = actors::wall_seconds();
    out << std::exchange(h.text, {}) << std::flush;
    if (!h.ended) continue;
    const finish_event end = h.end;
    const double now = actors::wall_seconds();
    out << '\n';
    const bool good = end.why >= reason::finished_eos && end.why <= reason::finished_kv_exhausted;
    if (!good) err << "octavo: " << sentence(end.why, end.a, end.b) << '\n';
    if (good && !o.quiet) {
      const double gap_s = h.tokens > 1 ? (now - first) / static_cast<double>(h.tokens - 1) : 0;
      char figures[160];
      std::snprintf(figures, sizeof figures,
                    "\n%lld tokens; first after %.0f ms, then %.1f tokens/s. %s\n",
                    static_cast<long long>(h.tokens), (first - start) * 1e3,
                    gap_s > 0 ? 1 / gap_s : 0.0, sentence(end.why, end.a, end.b).c_str());
      err << figures;
    }
    return good ? 0 : is_rejection(end.why) ? 2 : 1;
  }
}

int generate(const generate_options& o, std::ostream& out, std::ostream& err) {
  const model::checkpoint source = model::checkpoint::open(o.model);
  const model::tokenizer words = model::load_tokenizer(source);
  const auto prompt = std::make_shared<const std::vector<token_id>>(
      words.encode(o.prompt, {.parse_special = true}));
  if (prompt->empty()) throw input_error("--prompt: comes to no token");
  cpu::thread_pool pool{std::max(1U, std::thread::hardware_concurrency())};
  auto weights = std::make_shared<const cpu::decoder_weights>(cpu::load_decoder(source, pool));
  local_engine engine{o, weights, words, model::end_tokens_of(source, words)};
  const double start = actors::wall_seconds();
  engine.submit(prompt, o);
  return stream(engine, o, start, out, err);
}

}  // namespace

int generate_command(const std::vector<std::string>& arguments, std::ostream& out,
                     std::ostream& err) {
  try {
    generate_options options;
    if (const auto text = parse(arguments, options)) {
      out << *text;
      return 0;
    }
    return generate(options, out, err);
  } catch (const input_error& problem) {
    err << "octavo: " << problem.what() << '\n';
    return 2;
  } catch (const infeasible_error& problem) {
    err << "octavo: infeasible: " << problem.what() << '\n';
    return 3;
  }
}

}  // namespace octavo
