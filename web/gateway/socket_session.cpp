// Responses over a WebSocket: see socket_session.hpp.
#include "web/gateway/socket_session.hpp"

#include <utility>

#include "web/gateway/api/parse.hpp"
#include "web/gateway/api/response_stream.hpp"
#include "web/gateway/stream_answers.hpp"

namespace octavo::gateway {

/// One response on the socket. The hub owns it; the session knows it while it runs.
class socket_answer final : public listener {
 public:
  /// `key` is the session's name of it; the client's is in `asked` and may be empty.
  socket_answer(socket_session& session, socket_session::response_key key,
                const api::client_event& asked, const api::answer_identity& identity,
                const generation& of)
      : session_(session),
        key_(std::move(key)),
        client_id_(asked.id),
        id_field_(asked.id_field),
        events_(identity, of.request, client_id_, id_field_) {}

  void accepted() override {
    begun_ = true;
    for (const auto& e : events_.begin()) session_.send(e.json);
  }
  void text(std::int32_t, std::string_view text, std::span<const api::token_info> tokens) override {
    if (held_.empty() && !session_.is_congested()) {
      session_.send(events_.delta(text, tokens).json);
    } else {
      held_.add(text, tokens);
    }
  }
  void ended(std::int32_t, const api::ending& how) override { how_ = how; }
  void done(const api::token_usage& usage, const api::answer_timings& timings) override {
    finish(how_, usage, timings);
  }
  void failed(const api::api_error& why) override {
    send_held();
    if (begun_) {
      session_.send(events_.fail(why).json);
    } else {
      session_.send(api::error_event(why, client_id_, id_field_));
    }
    session_.over(key_);
  }

  void send_held() {
    const held_text held = std::exchange(held_, {});
    if (!held.empty()) session_.send(events_.delta(held.text, held.tokens).json);
  }
  /// The client wants no more of it.
  void cancelled() {
    if (!begun_) accepted();
    api::ending how;
    how.reason = "abort";
    finish(how, usage_so_far == nullptr ? api::token_usage{} : *usage_so_far, {});
  }

 private:
  void finish(const api::ending& how, const api::token_usage& usage,
              const api::answer_timings& timings) {
    send_held();
    for (const auto& e : events_.end(how, usage, timings)) session_.send(e.json);
    session_.over(key_);
  }

  socket_session& session_;
  socket_session::response_key key_;
  std::string client_id_;
  std::string id_field_;
  api::response_stream events_;
  held_text held_;
  api::ending how_;
  bool begun_ = false;
};

socket_session::socket_session(
    hub& requests, admission_gate gate,
    std::function<api::answer_identity(request_id, const std::string& model)> identify)
    : hub_(requests), gate_(std::move(gate)), identify_(std::move(identify)) {}

socket_session::~socket_session() = default;

void socket_session::opened(net::websocket socket) {
  socket_ = std::move(socket);
}

void socket_session::text(std::string message) {
  api::client_event event;
  try {
    event = api::parse_client_event(message);
  } catch (const api::api_error& why) {
    const api::client_event named = api::name_in_refused(message);
    return send(api::error_event(why, named.id, named.id_field));
  }
  try {
    if (event.what == api::client_event::kind::cancel) {
      cancel(event.id);
    } else {
      create(event);
    }
  } catch (const api::api_error& why) {
    send(api::error_event(why, event.id, event.id_field));
  }
}

void socket_session::binary(std::string) {
  socket_.close(1003, "only text messages are understood");
}

void socket_session::create(const api::client_event& event) {
  if (!event.id.empty() && running_.contains({true, event.id})) {
    throw api::invalid_request("id", "a response named '" + event.id + "' is under way here",
                               "response_already_in_flight");
  }
  if (running_.size() >= responses_per_socket_max) {
    throw api::rate_limited("this socket carries " + std::to_string(running_.size()) +
                            " responses already; " + std::to_string(responses_per_socket_max) +
                            " are allowed");
  }
  auto request = api::parse_responses(event.body, hub_.model().limits);
  gate_.enter();
  const bool is_named = !event.id.empty();
  const response_key key{is_named, is_named ? event.id : std::to_string(unnamed_++)};
  running& slot = running_[key];
  // Without the body: what is asked may be known for long before it begins.
  api::client_event asked;
  asked.id = event.id;
  asked.id_field = event.id_field;
  try {
    slot.number = hub_.start(
        std::move(request),
        [this, key, asked](request_id first, const generation& of) {
          const auto identity = identify_(first, of.request.model);
          auto answer = std::make_unique<socket_answer>(*this, key, asked, identity, of);
          running_.at(key).answer = answer.get();
          return answer;
        },
        [this, key, asked](const api::api_error& why) {
          send(api::error_event(why, asked.id, asked.id_field));
          over(key);
        });
  } catch (...) {
    running_.erase(key);
    gate_.leave();
    throw;
  }
}

void socket_session::cancel(const std::string& id) {
  auto found = running_.find({true, id});
  // Without a name: the only one there is.
  if (id.empty() && running_.size() == 1) found = running_.begin();
  if (found == running_.end()) {
    throw api::not_found("no response named '" + id + "' is under way here", "id");
  }
  // One that has not begun ends like one that has not been accepted.
  if (found->second.answer == nullptr) hub_.introduce(found->second.number);
  const running which = found->second;
  which.answer->cancelled();
  hub_.cancel(which.number);
}

void socket_session::over(const response_key& key) {
  running_.erase(key);
  gate_.leave();
}

bool socket_session::is_congested() {
  if (socket_.pending_bytes() <= coalesce_above_bytes) return false;
  if (!std::exchange(waits_, true)) {
    socket_.on_drain(coalesce_above_bytes / 2, [this, alive = std::weak_ptr{alive_}] {
      if (!alive.expired()) send_held();
    });
  }
  return true;
}

void socket_session::send_held() {
  waits_ = false;
  for (auto& [key, which] : running_) {
    if (which.answer != nullptr) which.answer->send_held();
  }
}

void socket_session::closed(const net::close_event&) {
  const auto all = std::exchange(running_, {});
  for (const auto& [key, which] : all) {
    hub_.cancel(which.number);
    gate_.leave();
  }
}

}  // namespace octavo::gateway
