// Answers over HTTP: see stream_answers.hpp.
#include "web/gateway/stream_answers.hpp"

#include <utility>

#include "web/gateway/api/response_stream.hpp"
#include "web/gateway/api/shapes.hpp"
#include "web/gateway/api/sse.hpp"

namespace octavo::gateway {
namespace {

/// One event for each piece: how often a stream writes, whatever its shape.
class event_stream : public listener, public beating {
 public:
  event_stream(answer_channel channel, std::size_t samples)
      : channel_(std::move(channel)), held_(samples) {
    channel_.beats->add(this);
  }
  ~event_stream() override { channel_.beats->remove(this); }

  void accepted() final {
    begin();
    opening();
  }
  void text(std::int32_t index, std::string_view text,
            std::span<const api::token_info> tokens) final {
    held_text& held = held_[static_cast<std::size_t>(index)];
    if (channel_.to.pending_bytes() <= coalesce_above_bytes && held.empty()) {
      piece(index, text, tokens);
      return;
    }
    held.add(text, tokens);
    if (std::exchange(waits_, true)) return;
    channel_.to.on_drain(coalesce_above_bytes / 2, [this, alive = std::weak_ptr{alive_}] {
      if (!alive.expired()) send_held();
    });
  }
  void ended(std::int32_t index, const api::ending& how) final {
    send_held();
    ending(index, how);
  }
  void failed(const api::api_error& why) final {
    if (!begun_) return channel_.to.send(error_response(why, channel_.headers));
    send_held();
    failing(why);
    channel_.to.end();
  }
  void beat() final {
    if (begun_ && !std::exchange(wrote_, false)) channel_.to.write(api::sse_heartbeat);
  }

 protected:
  virtual void opening() = 0;
  virtual void piece(std::int32_t index, std::string_view text,
                     std::span<const api::token_info> tokens) = 0;
  virtual void ending(std::int32_t index, const api::ending& how) = 0;
  virtual void failing(const api::api_error& why) = 0;

  void write(std::string_view event) {
    wrote_ = true;
    channel_.to.write(event);
  }
  void end() { channel_.to.end(); }

 private:
  void begin() {
    if (std::exchange(begun_, true)) return;
    net::header_list headers = channel_.headers;
    headers.set("Content-Type", std::string{api::sse_content_type});
    headers.set("Cache-Control", "no-cache");
    headers.set("X-Accel-Buffering", "no");
    channel_.to.begin_stream(200, std::move(headers));
  }
  void send_held() {
    waits_ = false;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const held_text held = std::exchange(held_[i], {});
      if (!held.empty()) piece(static_cast<std::int32_t>(i), held.text, held.tokens);
    }
  }

  answer_channel channel_;
  std::vector<held_text> held_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  bool begun_ = false;
  bool waits_ = false;
  bool wrote_ = false;
};

/// Chunks of a chat completion or a completion.
template <class Chunks>
class chunk_stream final : public event_stream {
 public:
  chunk_stream(answer_channel channel, const api::answer_identity& identity, const generation& of)
      : event_stream(std::move(channel), of.last_token.size()),
        of_(of),
        chunks_(identity, {of.request.include_usage, of.request.sampling.logprobs >= 0}) {}

  void done(const api::token_usage& usage, const api::answer_timings&) override {
    if (of_.request.include_usage) write(api::sse_event(chunks_.usage(usage)));
    write(api::sse_done);
    end();
  }

 protected:
  void opening() override {
    for (std::size_t i = 0; i < of_.last_token.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      if constexpr (requires { chunks_.role(index, so_far()); }) {
        write(api::sse_event(chunks_.role(index, so_far())));
      } else if (of_.request.echo) {
        piece(index, of_.prompts[i / static_cast<std::size_t>(of_.request.n)].text, {});
      }
    }
  }
  void piece(std::int32_t index, std::string_view text,
             std::span<const api::token_info> tokens) override {
    write(api::sse_event(chunks_.content(index, text, tokens, so_far())));
  }
  void ending(std::int32_t index, const api::ending& how) override {
    write(api::sse_event(chunks_.finish(index, how, so_far())));
  }
  void failing(const api::api_error& why) override {
    write(api::sse_event(why.to_json()));
    write(api::sse_done);
  }

 private:
  [[nodiscard]] const api::token_usage* so_far() const {
    return of_.request.continuous_usage ? usage_so_far : nullptr;
  }

  const generation& of_;
  Chunks chunks_;
};

class responses_sse final : public event_stream {
 public:
  responses_sse(answer_channel channel, const api::answer_identity& identity, const generation& of)
      : event_stream(std::move(channel), of.last_token.size()), events_(identity, of.request) {}

  void done(const api::token_usage& usage, const api::answer_timings& timings) override {
    for (const auto& e : events_.end(how_, usage, timings)) put(e);
    end();
  }

 protected:
  void opening() override {
    for (const auto& e : events_.begin()) put(e);
  }
  void piece(std::int32_t, std::string_view text,
             std::span<const api::token_info> tokens) override {
    put(events_.delta(text, tokens));
  }
  void ending(std::int32_t, const api::ending& how) override { how_ = how; }
  void failing(const api::api_error& why) override { put(events_.fail(why)); }

 private:
  void put(const api::response_event& e) { write(api::sse_event(e.json, e.name)); }

  api::response_stream events_;
  api::ending how_;
};

/// One JSON text at the end.
class whole_answer final : public listener {
 public:
  whole_answer(answer_channel channel, api::answer_identity identity, const generation& of)
      : channel_(std::move(channel)),
        identity_(std::move(identity)),
        of_(of),
        choices_(of.last_token.size()) {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      choices_[i].index = static_cast<std::int32_t>(i);
      if (of.request.echo) {
        choices_[i].text = of.prompts[i / static_cast<std::size_t>(of.request.n)].text;
      }
    }
  }

  void accepted() override {}
  void text(std::int32_t index, std::string_view text,
            std::span<const api::token_info> tokens) override {
    api::answered_choice& choice = choices_[static_cast<std::size_t>(index)];
    choice.text += text;
    choice.tokens.insert(choice.tokens.end(), tokens.begin(), tokens.end());
  }
  void ended(std::int32_t index, const api::ending& how) override {
    choices_[static_cast<std::size_t>(index)].end = how;
  }
  void done(const api::token_usage& usage, const api::answer_timings& timings) override {
    net::header_list headers = channel_.headers;
    headers.set("Content-Type", "application/json");
    channel_.to.send({200, std::move(headers), body(usage, timings)});
  }
  void failed(const api::api_error& why) override {
    channel_.to.send(error_response(why, channel_.headers));
  }

 private:
  [[nodiscard]] std::string body(const api::token_usage& usage,
                                 const api::answer_timings& timings) const {
    const bool logprobs = of_.request.sampling.logprobs >= 0;
    switch (of_.request.endpoint) {
      case api::endpoint_kind::chat:
        return api::chat_completion(identity_, choices_, usage, logprobs);
      case api::endpoint_kind::completions:
        return api::text_completion(identity_, choices_, usage, logprobs);
      case api::endpoint_kind::responses:
        break;
    }
    api::response_stream events{identity_, of_.request};
    static_cast<void>(events.begin());
    static_cast<void>(events.delta(choices_.front().text, choices_.front().tokens));
    return events.whole(choices_.front().end, usage, timings);
  }

  answer_channel channel_;
  api::answer_identity identity_;
  const generation& of_;
  std::vector<api::answered_choice> choices_;
};

}  // namespace

void held_text::add(std::string_view more, std::span<const api::token_info> more_tokens) {
  text += more;
  tokens.insert(tokens.end(), more_tokens.begin(), more_tokens.end());
}

std::unique_ptr<listener> http_answer(answer_channel channel, const api::answer_identity& identity,
                                      const generation& of) {
  if (!of.request.stream) {
    return std::make_unique<whole_answer>(std::move(channel), identity, of);
  }
  switch (of.request.endpoint) {
    case api::endpoint_kind::chat:
      return std::make_unique<chunk_stream<api::chat_stream>>(std::move(channel), identity, of);
    case api::endpoint_kind::completions:
      return std::make_unique<chunk_stream<api::completion_stream>>(std::move(channel), identity,
                                                                    of);
    case api::endpoint_kind::responses:
      break;
  }
  return std::make_unique<responses_sse>(std::move(channel), identity, of);
}

net::response error_response(const api::api_error& why, net::header_list headers) {
  headers.set("Content-Type", "application/json");
  if (why.status == 429 || why.status == 503) headers.set("Retry-After", "1");
  if (why.status == 401) headers.set("WWW-Authenticate", "Bearer");
  return {why.status, std::move(headers), why.to_json()};
}

}  // namespace octavo::gateway
