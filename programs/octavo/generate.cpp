// `octavo generate`: see generate.hpp.
#include "programs/octavo/generate.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

#include "actors/wall_clock.hpp"
#include "core/error.hpp"
#include "model/chat/chat_template.hpp"
#include "programs/octavo/command_line.hpp"
#include "programs/octavo/loading.hpp"
#include "programs/octavo/local_engine.hpp"

namespace octavo {
namespace {

struct generate_options {
  std::string model;
  std::string prompt;
  bool chat = false;
  std::optional<std::string> system;
  std::int32_t max_tokens = 128;
  sim::engine_flags engine;
  machine_flags machine;
  bool quiet = false;
  sampling_parameters sampling;
  std::int64_t seed = -1;
};

// The library's ranges let through what is not a number.
void check_sampling(const sampling_parameters& s) {
  const std::pair<const char*, float> numbers[] = {{"--temperature", s.temperature},
                                                   {"--top-p", s.top_p},
                                                   {"--min-p", s.min_p},
                                                   {"--repetition-penalty", s.repetition_penalty}};
  for (const auto& [flag, value] : numbers) {
    if (!std::isfinite(value)) throw input_error(std::string{flag} + ": is not a number");
  }
  for (const std::string& stop : s.stop) {
    if (stop.empty()) throw input_error("--stop: is empty; a text that ends the output is needed");
  }
}

// Returns a text to print instead of generating, or nothing.
std::optional<std::string> parse(const std::vector<std::string>& arguments, generate_options& o) {
  CLI::App app{
      "Generates text from a prompt.\n"
      "  octavo generate model.gguf --prompt \"The capital of France is\"",
      "octavo generate"};
  app.add_option("model", o.model, "a .gguf file or Hugging Face directory")->required();
  app.add_option("--prompt,-p", o.prompt, "text to continue, or with --chat, to answer")
      ->required();
  auto* chat = app.add_flag("--chat", o.chat, "ask as a user, with the model's chat template");
  app.add_option("--system", o.system, "instructions before the prompt")->needs(chat);
  app.add_option("--max-tokens,-n", o.max_tokens, "tokens to generate at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--temperature", o.sampling.temperature, "0: the likeliest token, always")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--top-k", o.sampling.top_k, "only the k likeliest; 0: all")
      ->check(CLI::Range(0, std::numeric_limits<std::int32_t>::max()));
  app.add_option("--top-p", o.sampling.top_p, "only the likeliest that come to p")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--min-p", o.sampling.min_p, "only those p times as likely as the likeliest")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--repetition-penalty", o.sampling.repetition_penalty, "1: none")
      ->check(CLI::Range(0.01, 10.0));
  app.add_option("--seed", o.seed, "the same seed gives the same text");
  app.add_option("--stop", o.sampling.stop, "text that ends the output; may be repeated");
  app.add_flag("--ignore-eos", o.sampling.ignore_eos, "go on where the model would end");
  app.add_flag("--quiet,-q", o.quiet, "the text only, no figures and no progress");
  add_machine_flags(app, o.machine);
  o.engine.max_num_seqs = 8;
  sim::add_engine_flags(app, o.engine);
  if (auto help = parse_flags(app, arguments)) return help;
  check_sampling(o.sampling);
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

void hear(heard& to, const actors::event_batch& batch) {
  const std::lock_guard hold{to.mutex};
  to.tokens += std::ssize(batch.tokens);
  to.text += batch.text;
  for (const finish_event& end : batch.finishes) {
    to.ended = true;
    to.end = end;
  }
  to.changed.notify_one();
}

int stream(heard& h, const generate_options& o, double start, std::ostream& out,
           std::ostream& err) {
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

// What clocks on the wall show, as seconds since 1970-01-01 00:00.
std::int64_t local_clock_s() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return ::timegm(&parts);
}

// The prompt as one turn of a conversation, whose end also ends the output.
std::vector<token_id> chat_prompt(const model::chat_template& chat, const generate_options& o,
                                  local_model& model) {
  for (const token_id end : model::end_of_turn_tokens(chat, model.words)) {
    const auto place = std::ranges::lower_bound(model.end_tokens, end);
    if (place == model.end_tokens.end() || *place != end) model.end_tokens.insert(place, end);
  }
  model::chat_options options;
  options.now_s = local_clock_s();
  return chat.render(model::question(o.prompt, o.system), options).tokens(model.words);
}

int generate(generate_options& o, std::ostream& out, std::ostream& err) {
  if (!o.quiet) o.machine.hears_loading = show_loading(err, true);
  std::optional<model::chat_template> chat;
  if (o.chat) chat = model::chat_template::from(model::checkpoint::open(o.model));
  local_model model = load_local_model(o.model, o.engine, o.machine);
  const engine_config config = local_engine_config(model, o.engine, o.machine);
  const auto prompt =
      chat ? chat_prompt(*chat, o, model) : model.words.encode(o.prompt, {.parse_special = true});
  request_spec request = local_request(model, config, 1, prompt, o.max_tokens, o.sampling);
  heard h;
  local_engine engine{model, config, o.engine, o.machine,
                      [&h](const actors::event_batch& batch) { hear(h, batch); }};
  const double start = actors::wall_seconds();
  engine.submit({std::move(request)});
  return stream(h, o, start, out, err);
}

}  // namespace

int generate_command(const std::vector<std::string>& arguments, std::ostream& out,
                     std::ostream& err) {
  return run_command(err, [&] {
    generate_options options;
    if (const auto text = parse(arguments, options)) {
      out << *text;
      return 0;
    }
    return generate(options, out, err);
  });
}

}  // namespace octavo
