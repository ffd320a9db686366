// The endpoint: see gateway.hpp.
#include "web/gateway/gateway.hpp"

#include <future>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "web/gateway/access_control.hpp"
#include "web/gateway/api/parse.hpp"
#include "web/gateway/api/shapes.hpp"
#include "web/gateway/identities.hpp"
#include "web/gateway/net/server.hpp"
#include "web/gateway/page/page.hpp"
#include "web/gateway/preparer.hpp"
#include "web/gateway/recent_rates.hpp"
#include "web/gateway/routes.hpp"
#include "web/gateway/socket_session.hpp"
#include "web/gateway/stream_answers.hpp"

namespace octavo::gateway {
namespace {

net::response json_response(std::string body, int status = 200) {
  return {status, {{"Content-Type", "application/json"}}, std::move(body)};
}

net::response text_response(std::string body, std::string type = "text/plain; charset=utf-8") {
  return {200, {{"Content-Type", std::move(type)}}, std::move(body)};
}

// What a page may load and talk to: itself.
constexpr std::string_view page_policy =
    "default-src 'self'; connect-src 'self' ws: wss:; frame-ancestors 'none'; base-uri 'none'";

metrics_options metrics_of(const gateway_options& options, const served_model& model) {
  metrics_options m;
  m.prefix = options.metrics_prefix;
  m.model_name = model.limits.served_model_names.front();
  m.max_model_len = model.limits.max_model_len.raw();
  m.prefix_caching = model.prefix_caching;
  m.waiting = options.waiting;
  m.cache_config = {{"block_size", std::to_string(model.block_size.raw())},
                    {"num_gpu_blocks", std::to_string(model.blocks_total.raw())},
                    {"enable_prefix_caching", model.prefix_caching ? "True" : "False"}};
  return m;
}

}  // namespace

class gateway::core {
 public:
  core(gateway_options options, served_model model, engine_link& engine, hub_clocks clocks,
       std::function<void(const std::string&)> log)
      : options_(std::move(options)),
        engine_(engine),
        log_(std::move(log)),
        access_(options_.api_keys, options_.allowed_origins, options_.requests_per_client_max),
        metrics_(metrics_of(options_, model)),
        started_unix_s_(clocks.unix_seconds()),
        identities_(clocks) {
    if (!options_.record_trace.empty()) {
      recorder_.emplace(options_.record_trace, model.block_size, log_);
    }
    hub_.emplace(std::move(model), engine_, std::move(clocks), metrics_,
                 recorder_ ? &*recorder_ : nullptr, &preparer_);
    add_routes();
    server_.emplace(options_.network, application());
  }

  // The preparer's thread may post until it has ended.
  ~core() { preparer_.stop(); }
  core(const core&) = delete;
  core& operator=(const core&) = delete;

  void start() {
    server_->start();
    beat_later();
  }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  void post(std::function<void()> work) { server_->post(std::move(work)); }
  void hear(actors::event_batch_ptr events) {
    server_->post([this, events = std::move(events)] {
      hub_->hear(*events);
      rates_.heard(*events, hub_->clocks().seconds());
      latest_ = *events;
      end_if_drained();
    });
  }
  void engine_failed(std::string why) {
    server_->post([this, why = std::move(why)] {
      engine_problem_ = why;
      if (recorder_) recorder_->engine_failed();
      hub_->fail_all(api::server_error("the engine has stopped: " + why));
      end_if_drained();
    });
  }
  void drain() {
    server_->post([this] {
      // Listening goes on: to a closed port, a client could not be told why.
      if (std::exchange(draining_, true)) return;
      // The engine would refuse them when they are ready.
      hub_->fail_preparing(api::overloaded("the server is shutting down"));
      engine_.drain();
      server_->after(options_.shutdown_timeout, [this] { end("the server is shutting down"); });
      end_if_drained();
    });
  }
  void stop() {
    server_->post([this] { end("the server is shutting down"); });
  }
  void join() {
    // The server would end with its last connection, also when no more may come.
    ending_.get_future().wait();
    server_->join();
    if (recorder_) recorder_->close();
  }

 private:
  using asked = const net::request&;

  net::application application() {
    net::application app;
    app.on_request = [this](net::request request, net::responder to) {
      answer(std::move(request), std::move(to));
    };
    app.on_upgrade = [this](const net::request& request) { return upgrade(request); };
    app.error_response = [](int status, std::string_view message) {
      api::api_error why;
      why.status = status;
      // What the server does not speak is the client's doing.
      const bool is_ours = status >= 500 && status != 501 && status != 505;
      why.type = is_ours ? "server_error" : "invalid_request_error";
      why.message = message;
      return error_response(why, {});
    };
    app.on_refusal = [this](int status) { metrics_.answered("none", "none", status, 0); };
    app.log = [this](std::string_view line) { log_(std::string{line}); };
    return app;
  }

  void answer(net::request request, net::responder to) {
    net::header_list headers;
    access_.add_cors(request, headers);
    count_answer("none", request, to);
    try {
      if (request.method == "OPTIONS") {
        to.send({204, headers, {}});
        return;
      }
      const route& way = routes_.find(request);
      count_answer(way.path, request, to);
      if (way.needs_key) client_of(request);
      refuse_encoding(request);
      way.run(request, {to, headers, &beats_, nullptr});
    } catch (const api::api_error& why) {
      if (why.status == 405) headers.set("Allow", routes_.allowed(request.path));
      to.send(error_response(why, headers));
    }
  }

  static void refuse_encoding(asked request) {
    const auto encoding = request.headers.find("Content-Encoding");
    if (!encoding || net::equal_ignoring_case(*encoding, "identity")) return;
    throw api::api_error{415, "invalid_request_error",
                         "Content-Encoding is " + std::string{*encoding} +
                             "; bodies are taken as they are (identity)"};
  }

  // Answers of one request may begin long after its route has returned.
  void count_answer(const std::string& handler, asked request, net::responder& to) {
    const double start = hub_->clocks().seconds();
    to.on_begin([this, start, handler, method = request.method](int status) {
      metrics_.answered(handler, method, status, hub_->clocks().seconds() - start);
    });
  }

  std::string client_of(asked request) const {
    if (!access_.origin_allowed(request)) {
      api::api_error why = api::unauthenticated("pages of this origin may not use the API");
      why.status = 403;
      throw why;
    }
    return access_.client_of(request);
  }

  void add_routes();
  void add_pages();
  void add_generations();
  void add_words();
  void tokenize(asked request, answer_channel channel);
  std::string tokens_answer(const api::tokenize_request& what) const;

  // Sends a whole response with the request's common headers.
  static void send(answer_channel& channel, net::response whole) {
    for (const auto& [name, value] : channel.headers) whole.headers.set(name, value);
    channel.to.send(std::move(whole));
  }

  // Counts a client's request as long as it lives.
  std::shared_ptr<void> enter(const std::string& client) {
    access_.enter(client);
    return {nullptr, [this, client](void*) { access_.leave(client); }};
  }

  void generate(asked request, answer_channel channel, api::generation_request what) {
    check_open();
    channel.share = enter(client_of(request));
    net::responder to = channel.to;
    const std::uint64_t number = hub_->start(
        std::move(what),
        [this, channel](request_id first, const generation& of) mutable {
          const auto identity = identities_.make(of.request.endpoint, first, of.request.model);
          channel.headers.set("X-Request-Id", identity.id);
          return http_answer(std::move(channel), identity, of);
        },
        [channel](const api::api_error& why) mutable {
          channel.to.send(error_response(why, channel.headers));
        });
    to.on_close([this, number] {
      hub_->cancel(number);
      end_if_drained();
    });
  }

  void check_open() const {
    if (draining_) throw api::overloaded("the server is shutting down");
    if (!engine_problem_.empty()) {
      throw api::server_error("the engine has stopped: " + engine_problem_);
    }
  }

  net::upgrade_decision upgrade(asked request) {
    try {
      if (request.path != "/v1/responses") {
        throw api::not_found("WebSockets are at /v1/responses");
      }
      check_open();
      const std::string client = client_of(request);
      admission_gate gate{[this, client] {
                            check_open();
                            access_.enter(client);
                          },
                          [this, client] {
                            access_.leave(client);
                            end_if_drained();
                          }};
      net::websocket_acceptance accepted;
      accepted.session = std::make_unique<socket_session>(
          *hub_, std::move(gate), [this](request_id first, const std::string& model) {
            return identities_.make(api::endpoint_kind::responses, first, model);
          });
      for (const std::string& offered : net::offered_subprotocols(request)) {
        if (offered == "octavo" || offered == "realtime") accepted.subprotocol = offered;
      }
      return accepted;
    } catch (const api::api_error& why) {
      net::header_list headers;
      access_.add_cors(request, headers);
      return error_response(why, headers);
    }
  }

  void beat_later() {
    server_->after(options_.heartbeat_interval, [this] {
      beats_.beat();
      beat_later();
    });
  }

  void end_if_drained() {
    if (draining_ && hub_->live() == 0 && preparer_.live() == 0)
      close("the server is shutting down");
  }
  void end(const std::string& why) {
    draining_ = true;
    hub_->fail_all(api::overloaded(why));
    close(why);
  }
  void close(const std::string& why) {
    if (std::exchange(closed_, true)) return;
    server_->stop_accepting();
    server_->close_all(1001, why);
    ending_.set_value();
  }

  [[nodiscard]] bool is_healthy() const {
    return engine_problem_.empty() &&
           !hub_->is_stuck(static_cast<double>(options_.progress_deadline.count()) * 1e-3);
  }

  gateway_options options_;
  engine_link& engine_;
  std::function<void(const std::string&)> log_;
  access_control access_;
  metrics metrics_;
  std::int64_t started_unix_s_;
  identities identities_;
  heartbeats beats_;
  recent_rates rates_;
  route_table routes_;
  std::optional<recorder> recorder_;
  preparer preparer_{[this](std::function<void()> work) { server_->post(std::move(work)); }};
  std::optional<hub> hub_;
  actors::event_batch latest_;
  std::string engine_problem_;
  bool draining_ = false;
  bool closed_ = false;
  std::promise<void> ending_;
  // Ends first: it may still call what stands above.
  std::optional<net::server> server_;
};

void gateway::core::add_routes() {
  add_generations();
  add_words();
  add_pages();
  const auto health = [this](asked, answer_channel channel) {
    if (!is_healthy()) {
      throw api::overloaded(engine_problem_.empty()
                                ? "requests are under way and none has moved for too long"
                                : "the engine has stopped: " + engine_problem_);
    }
    send(channel, json_response("{}"));
  };
  routes_.add({"GET", "/health", false, health});
  routes_.add({"GET", "/ping", false, health});
  routes_.add({"GET", "/ready", false, [this](asked, answer_channel channel) {
                 check_open();
                 send(channel, json_response("{}"));
               }});
  routes_.add({"GET", "/version", false, [this](asked, answer_channel channel) {
                 send(channel, json_response(api::version_answer(options_.version)));
               }});
  routes_.add({"GET", "/load", false, [this](asked, answer_channel channel) {
                 send(channel,
                      json_response("{\"server_load\":" + std::to_string(hub_->live()) + "}"));
               }});
  routes_.add(
      {"GET", "/metrics", false, [this](asked, answer_channel channel) {
         engine_.ask_statistics([this, channel](const actors::statistics_list& all) mutable {
           send(channel,
                text_response(metrics_.text(all), "text/plain; version=0.0.4; charset=utf-8"));
         });
       }});
  routes_.add(
      {"GET", "/v1/requests/*/explain", true, [this](asked request, answer_channel channel) {
         const auto id = identities_.request_of(path_part(request.path, 2));
         if (!id) throw api::not_found("no request of that name was served here");
         engine_.ask_explanation(*id, [channel](std::string text) mutable {
           if (text.empty()) {
             channel.to.send(error_response(
                 api::not_found("this request is not remembered any more"), channel.headers));
           } else {
             send(channel, text_response(std::move(text)));
           }
         });
       }});
}

void gateway::core::add_generations() {
  const auto bodies = [this](const std::string& path, auto parse) {
    routes_.add({"POST", path, true, [this, parse](asked request, answer_channel channel) {
                   generate(request, std::move(channel), parse(request.body, hub_->model().limits));
                 }});
  };
  using parser = api::generation_request (*)(std::string_view, const api::limits&);
  bodies("/v1/chat/completions", parser{api::parse_chat});
  bodies("/v1/completions", parser{api::parse_completion});
  bodies("/v1/responses", parser{api::parse_responses});
}

void gateway::core::add_words() {
  const auto served = [this]() -> const served_model& { return hub_->model(); };
  routes_.add({"GET", "/v1/models", true, [this, served](asked, answer_channel channel) {
                 const api::limits& bounds = served().limits;
                 send(channel,
                      json_response(api::models_list(bounds.served_model_names, started_unix_s_,
                                                     bounds.max_model_len)));
               }});
  routes_.add({"GET", "/v1/models/*", true, [this, served](asked request, answer_channel channel) {
                 const api::limits& bounds = served().limits;
                 const std::string name = path_part(request.path, 2);
                 for (const std::string& known : bounds.served_model_names) {
                   if (known != name) continue;
                   return send(channel, json_response(api::model_card(name, started_unix_s_,
                                                                      bounds.max_model_len)));
                 }
                 throw api::not_found("the model '" + name + "' is not served here", "model",
                                      "model_not_found");
               }});
  routes_.add({"POST", "/tokenize", true, [this, served](asked request, answer_channel channel) {
                 tokenize(request, std::move(channel));
               }});
  routes_.add({"POST", "/detokenize", true, [served](asked request, answer_channel channel) {
                 const served_model& model = served();
                 const auto what = api::parse_detokenize(request.body, model.limits);
                 send(channel, json_response(api::detokenize_answer(model.words->decode_text(
                                   what.tokens, {.skip_special = false}))));
               }});
}

void gateway::core::tokenize(asked request, answer_channel channel) {
  auto what = api::parse_tokenize(request.body, hub_->model().limits);
  const std::size_t bytes = api::prompt_bytes(what.input);
  if (bytes < long_prompt_bytes) return send(channel, json_response(tokens_answer(what)));
  preparer_.run(
      bytes, [this, what = std::move(what)] { return tokens_answer(what); },
      [this, channel = std::move(channel)](outcome<std::string> body) mutable {
        if (const auto* why = std::get_if<api::api_error>(&body)) {
          channel.to.send(error_response(*why, channel.headers));
        } else {
          send(channel, json_response(std::get<std::string>(std::move(body))));
        }
        end_if_drained();
      });
}

// Any thread.
std::string gateway::core::tokens_answer(const api::tokenize_request& what) const {
  const served_model& model = hub_->model();
  const auto tokens = api::tokenize(what.input, *model.words, model.chat.get(), model.limits,
                                    hub_->clocks().unix_seconds());
  std::vector<std::string> texts;
  for (const token_id t : tokens.front()) texts.emplace_back(model.words->piece(t));
  return api::tokenize_answer(tokens.front(), model.limits.max_model_len,
                              what.return_token_strs ? &texts : nullptr);
}

void gateway::core::add_pages() {
  std::vector<std::string> paths{"/"};
  for (const embedded_file& file : embedded_files()) paths.push_back("/" + std::string{file.path});
  for (const std::string& path : paths) {
    routes_.add({"GET", path, false, [](asked request, answer_channel channel) {
                   const auto file = page_file_at(request.path);
                   if (!file) throw api::not_found("there is nothing at " + request.path);
                   net::response whole =
                       text_response(std::string{file->text}, std::string{file->content_type});
                   whole.headers.set("Content-Security-Policy", std::string{page_policy});
                   whole.headers.set("X-Content-Type-Options", "nosniff");
                   whole.headers.set("Cache-Control", "no-cache");
                   send(channel, std::move(whole));
                 }});
  }
  routes_.add({"GET", "/v1/status", true, [this](asked, answer_channel channel) {
                 const nlohmann::ordered_json status{
                     {"model", hub_->model().limits.served_model_names.front()},
                     {"running", latest_.running},
                     {"waiting", latest_.waiting},
                     {"blocks_used", latest_.blocks_used.raw()},
                     {"blocks_total", hub_->model().blocks_total.raw()},
                     {"tokens_per_s", rates_.tokens_per_s(hub_->clocks().seconds())},
                     {"prefix_hit_rate", rates_.prefix_hit_rate()}};
                 send(channel, json_response(status.dump()));
               }});
}

gateway::gateway(gateway_options options, served_model model, engine_link& engine,
                 hub_clocks clocks, std::function<void(const std::string&)> log)
    : core_(std::make_unique<core>(std::move(options), std::move(model), engine, std::move(clocks),
                                   std::move(log))) {}
gateway::~gateway() = default;

void gateway::start() {
  core_->start();
}
std::uint16_t gateway::port() const {
  return core_->port();
}
void gateway::hear(actors::event_batch_ptr events) {
  core_->hear(std::move(events));
}
void gateway::engine_failed(std::string why) {
  core_->engine_failed(std::move(why));
}
void gateway::post(std::function<void()> work) {
  core_->post(std::move(work));
}
void gateway::drain() {
  core_->drain();
}
void gateway::stop() {
  core_->stop();
}
void gateway::join() {
  core_->join();
}

}  // namespace octavo::gateway
