// The endpoint: HTTP and WebSocket routes in front of one engine.
//
//   gateway door{options, model, engine, clocks, log};
//   door.start();                 // … door.port() …
//   door.hear(events);            // from any thread: what the engine tells
//   door.drain();                 // refuse what is new; ends when the last answer is out
//   door.join();
//
// Everything but start, hear, drain, stop and join runs on the server's network thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "web/gateway/engine_link.hpp"
#include "web/gateway/hub.hpp"
#include "web/gateway/net/options.hpp"
#include "web/gateway/waiting_reasons.hpp"

namespace octavo::gateway {

struct gateway_options {
  net::server_options network;
  /// Where not empty, clients must bring one of these.
  std::vector<std::string> api_keys;
  /// Origins of pages that may use the API from a browser; "*" for any.
  std::vector<std::string> allowed_origins;
  /// Requests of one key (without keys: of one address) under way at once; 0: no limit.
  std::int64_t requests_per_client_max = 0;
  std::string metrics_prefix = "vllm";
  std::string version;
  /// Why requests wait, for the metrics; outlives the gateway, or null.
  const waiting_reasons* waiting = nullptr;
  /// Where not empty, the requests that were served are written here as a trace.
  std::string record_trace;
  /// How the engine says that it is alive: health is red when requests are under way and
  /// none has moved for so long.
  std::chrono::milliseconds progress_deadline{60'000};
  /// Silence after which a stream gets a comment.
  std::chrono::milliseconds heartbeat_interval{15'000};
  /// After drain(): how long answers under way may take.
  std::chrono::milliseconds shutdown_timeout{30'000};
};

class gateway {
 public:
  /// `engine` outlives this. `log` hears of faults, one line each, on the network thread.
  gateway(gateway_options options, served_model model, engine_link& engine, hub_clocks clocks,
          std::function<void(const std::string&)> log);
  ~gateway();
  gateway(const gateway&) = delete;
  gateway& operator=(const gateway&) = delete;

  /// Throws input_error naming what cannot be used (address, certificate, file).
  void start();
  [[nodiscard]] std::uint16_t port() const;

  /// What the engine tells; any thread.
  void hear(actors::event_batch_ptr events);
  /// The engine is gone: ends everything under way with an error; health stays red.
  void engine_failed(std::string why);
  /// Runs work on the network thread; for engine links.
  void post(std::function<void()> work);

  /// No new requests; join() returns when those under way are answered, or
  /// shutdown_timeout has passed.
  void drain();
  /// Ends everything at once.
  void stop();
  void join();

 private:
  class core;
  std::unique_ptr<core> core_;
};

}  // namespace octavo::gateway
