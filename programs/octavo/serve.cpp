// `octavo serve`: see serve.hpp.
#include "programs/octavo/serve.hpp"

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include "actors/wall_clock.hpp"
#include "core/error.hpp"
#include "programs/octavo/command_line.hpp"
#include "programs/octavo/loading.hpp"
#include "programs/octavo/served_engine.hpp"
#include "web/gateway/actor_link.hpp"
#include "web/gateway/gateway.hpp"
#include "web/gateway/net/framing.hpp"
#include "web/gateway/waiting_reasons.hpp"

namespace octavo {
namespace {

struct serve_options {
  std::string model;
  std::vector<std::string> served_names;
  std::string decision_log;
  double shutdown_timeout_s = 30;
  double progress_deadline_s = 60;
  std::uint16_t port = 8000;
  std::int64_t max_body_bytes = 0;
  std::int32_t max_logprobs = 20;
  bool quiet = false;
  gateway::gateway_options door;
  sim::engine_flags engine;
  machine_flags machine;
  simulated_flags simulated;
};

void add_server_flags(CLI::App& app, serve_options& o) {
  const auto group = [&](const std::string& flag, auto& target, const std::string& help) {
    return app.add_option(flag, target, help)->group("Server")->capture_default_str();
  };
  group("--host", o.door.network.host, "address to listen on");
  group("--port", o.port, "0: any free one");
  group("--api-key", o.door.api_keys, "what clients must bring; may be repeated");
  group("--served-model-name", o.served_names, "names under which clients ask for the model");
  group("--allowed-origins", o.door.allowed_origins, "origins of pages that may call; * for any");
  group("--ssl-certfile", o.door.network.certificate_file, "certificate chain in PEM");
  group("--ssl-keyfile", o.door.network.key_file, "its key in PEM");
  group("--max-requests-per-client", o.door.requests_per_client_max,
        "requests of one key or address at once; 0: no limit")
      ->check(CLI::Range(0, 1'000'000));
  group("--max-body-bytes", o.max_body_bytes,
        "largest request body; 0: 256 for each token of the context, 4 to 32 MiB")
      ->check(CLI::Range(0, 1 << 30));
  group("--max-logprobs", o.max_logprobs, "most alternatives that a request may ask for")
      ->check(CLI::Range(0, 1'000));
  group("--metrics-prefix", o.door.metrics_prefix, "of the names at /metrics");
  group("--record-trace", o.door.record_trace, "write what is served as a trace for sim --trace");
  group("--decision-log", o.decision_log, "write every decision for sim --replay");
  group("--shutdown-timeout", o.shutdown_timeout_s, "seconds that answers under way may take")
      ->check(CLI::Range(0.0, 86'400.0));
  group("--progress-deadline", o.progress_deadline_s,
        "seconds without progress until /health is red")
      ->check(CLI::Range(0.1, 86'400.0));
}

void add_device_flags(CLI::App& app, serve_options& o) {
  app.add_option("--device", o.machine.device,
                 "auto, cpu, cuda, or sim: a simulated machine in wall time; cuda-emulated for "
                 "tests with tiny models")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "sim", "cuda-emulated"}))
      ->capture_default_str();
  const auto group = [&](const std::string& flag, std::string& target, const std::string& help) {
    app.add_option(flag, target, help)->group("With --device sim");
  };
  group("--gpu", o.simulated.gpu, "a GPU of sim --list-gpus");
  group("--profile", o.simulated.profile, "price steps from a measured profile");
  group("--step-time", o.simulated.step_time, "price every step the same, as 50ms");
  group("--host-time", o.simulated.host_time, "time to plan and launch a step, as 1ms");
  group("--tokenizer", o.simulated.tokenizer,
        "a model whose tokenizer and template to use; without it a byte is a token");
  app.add_option("--placeholder", o.simulated.placeholder,
                 "what the tokens say: prose, or the clock when their step ended, in microseconds")
      ->check(CLI::IsMember({"prose", "clock"}))
      ->group("With --device sim");
}

void check_options(const serve_options& o) {
  for (const std::string& key : o.door.api_keys) {
    if (key.empty()) throw input_error("--api-key: an empty key is not allowed");
  }
  for (const std::string& name : o.served_names) {
    if (name.empty() || !net::is_utf8(name)) {
      throw input_error("--served-model-name: a name in UTF-8 that is not empty is needed");
    }
  }
  if (std::isnan(o.shutdown_timeout_s) || std::isnan(o.progress_deadline_s)) {
    throw input_error("--shutdown-timeout, --progress-deadline: nan is no number of seconds");
  }
  if (o.max_body_bytes != 0 && o.max_body_bytes < 1024) {
    throw input_error("--max-body-bytes: " + std::to_string(o.max_body_bytes) +
                      " is not allowed; 0, and 1024 to 1073741824, are");
  }
  const std::filesystem::path trace{o.door.record_trace};
  const std::filesystem::path log{o.decision_log};
  if (!trace.empty() && !log.empty() &&
      std::filesystem::weakly_canonical(trace) == std::filesystem::weakly_canonical(log)) {
    throw input_error("--record-trace and --decision-log: both name " + o.decision_log +
                      "; each needs a file of its own");
  }
}

std::optional<std::string> parse(const std::vector<std::string>& arguments, serve_options& o) {
  CLI::App app{
      "Serves a model over an OpenAI-compatible HTTP API and WebSocket.\n"
      "  octavo serve model.gguf --port 8000\n"
      "  octavo serve llama-3.1-8b --device sim --gpu h100",
      "octavo serve"};
  app.add_option("model", o.model,
                 "a .gguf file or Hugging Face directory; with --device sim also a model of "
                 "sim --list-models, or nothing beside --step-time");
  add_device_flags(app, o);
  add_server_flags(app, o);
  app.add_flag("--quiet,-q", o.quiet, "no progress while the model is loaded");
  add_machine_flags(app, o.machine, false);
  o.engine.max_num_seqs = 64;
  o.engine.max_num_queued_reqs = 1024;
  sim::add_engine_flags(app, o.engine);
  if (auto help = parse_flags(app, arguments)) return help;
  if (o.model.empty() && o.machine.device != "sim") throw input_error("model: a file is needed");
  check_options(o);
  return std::nullopt;
}

std::int64_t seconds_since_1970() {
  return static_cast<std::int64_t>(std::time(nullptr));
}

hash128 random_secret() {
  std::random_device entropy;
  const auto word = [&] { return std::uint64_t{entropy()} << 32U | entropy(); };
  return {word(), word()};
}

// A body is parsed on the thread that serves everybody, so it is no larger than the model
// has use for: several prompts as long as the context, however they are written.
std::size_t body_bytes_for(token_count context) {
  constexpr std::size_t bytes_of_token = 256;
  return std::clamp(static_cast<std::size_t>(context.raw()) * bytes_of_token, std::size_t{4} << 20U,
                    std::size_t{32} << 20U);
}

void finish_options(serve_options& o, gateway::served_model& model) {
  o.door.network.port = o.port;
  o.door.network.body_bytes_max = o.max_body_bytes > 0 ? static_cast<std::size_t>(o.max_body_bytes)
                                                       : body_bytes_for(model.limits.max_model_len);
  o.door.network.message_bytes_max =
      std::min<std::size_t>(o.door.network.message_bytes_max, o.door.network.body_bytes_max);
  o.door.version = OCTAVO_VERSION;
  const auto ms = [](double s) {
    return std::chrono::milliseconds{static_cast<std::int64_t>(s * 1e3)};
  };
  o.door.shutdown_timeout = ms(o.shutdown_timeout_s);
  o.door.progress_deadline = ms(o.progress_deadline_s);
  model.limits.logprobs_max = o.max_logprobs;
  if (o.served_names.empty()) return;
  // A simulated machine says in every answer that it is one.
  if (o.machine.device == "sim") {
    for (std::string& name : o.served_names) {
      if (!name.starts_with("simulated-")) name = "simulated-" + name;
    }
  }
  model.limits.served_model_names = o.served_names;
}

/// Ends the process at a signal, while nothing is served yet that could be drained. Threads
/// that are made meanwhile must have the signals blocked, so one waits for them.
class ends_while_loading {
 public:
  explicit ends_while_loading(const sigset_t& signals)
      : watcher_([signals](const std::stop_token& loaded) {
          constexpr timespec a_moment{0, 20'000'000};
          while (!loaded.stop_requested()) {
            const int signal = sigtimedwait(&signals, nullptr, &a_moment);
            if (signal > 0) std::_Exit(128 + signal);
          }
        }) {}

 private:
  std::jthread watcher_;
};

/// Time for the threads to end after they were told to stop.
constexpr int stopping_s_max = 10;

// Waits for signals while the gateway works. They are blocked in every thread, so that
// only this function hears of them.
void wait_for_end(gateway::gateway& door, const sigset_t& signals) {
  std::jthread watcher{[&door] {
    door.join();
    kill(getpid(), SIGUSR1);  // wakes sigwait below
  }};
  for (int heard = 0;;) {
    const timespec wait{heard < 2 ? 86'400 : stopping_s_max, 0};
    const int signal = sigtimedwait(&signals, nullptr, &wait);
    if (signal == SIGUSR1) return;
    if (signal < 0 && heard < 2) continue;
    if (signal < 0) {
      spdlog::critical("not ended after {} s; leaving as it is", stopping_s_max);
      std::_Exit(1);
    }
    if (heard++ == 0) {
      spdlog::info("draining: no new requests; a second signal stops at once");
      door.drain();
    } else {
      spdlog::info("stopping at once");
      door.stop();
    }
  }
}

int serve(serve_options& o, std::ostream& out, std::ostream& err) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // The log has the time that it took.
  if (!o.quiet) o.machine.hears_loading = show_loading(err, false);
  prepared_engine ready = [&] {
    const ends_while_loading watch{signals};
    return o.machine.device == "sim" ? prepare_simulated(o.model, o.engine, o.simulated)
                                     : prepare_local(o.model, o.engine, o.machine);
  }();
  finish_options(o, ready.model);
  ready.model.secret = random_secret();
  const engine_config config = ready.config;
  gateway::waiting_reasons waiting;
  o.door.waiting = &waiting;
  served_engine engine{ready, waiting, o.decision_log};
  std::unique_ptr<gateway::gateway> door;
  bool failed = false;
  gateway::actor_link link{engine.system(),
                           engine.door(),
                           engine.parts(),
                           {[&](actors::event_batch_ptr events) { door->hear(std::move(events)); },
                            [&](std::function<void()> work) { door->post(std::move(work)); },
                            [&](std::string why) {
                              spdlog::error("the engine has stopped: {}", why);
                              failed = true;
                              door->engine_failed(std::move(why));
                            }}};
  const std::string chat_problem = ready.model.limits.chat_problem;
  const std::string name = ready.model.limits.served_model_names.front();
  door = std::make_unique<gateway::gateway>(
      o.door, std::move(ready.model), link,
      gateway::hub_clocks{actors::wall_seconds, seconds_since_1970},
      [](const std::string& line) { spdlog::warn("{}", line); });
  door->start();
  const bool secure = !o.door.network.certificate_file.empty();
  spdlog::info("{}; {} KV blocks of {} tokens, at most {} tokens a request", ready.description,
               config.num_blocks.raw(), config.block_size.raw(), config.max_model_len.raw());
  if (!chat_problem.empty()) spdlog::warn("{}; chats are refused with 400", chat_problem);
  out << "serving " << name << " at http" << (secure ? "s" : "") << "://" << o.door.network.host
      << ":" << door->port() << std::endl;
  wait_for_end(*door, signals);
  return failed ? 1 : 0;
}

}  // namespace

int serve_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  return run_command(err, [&] {
    serve_options options;
    if (const auto text = parse(arguments, options)) {
      out << *text;
      return 0;
    }
    spdlog::set_default_logger(spdlog::stderr_color_mt("octavo"));
    return serve(options, out, err);
  });
}

}  // namespace octavo
