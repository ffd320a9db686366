// Answers to HTTP requests: as one JSON text, or as server-sent events.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "web/gateway/generation.hpp"
#include "web/gateway/net/handles.hpp"
#include "web/gateway/net/http.hpp"

namespace octavo::gateway {

/// Bytes on their way to one client above which texts are kept and sent together: a slow
/// reader gets fewer, longer pieces.
inline constexpr std::size_t coalesce_above_bytes = 64 * 1024;

/// Text of one sample that is not sent yet.
struct held_text {
  std::string text;
  std::vector<api::token_info> tokens;

  [[nodiscard]] bool empty() const { return text.empty() && tokens.empty(); }
  void add(std::string_view more, std::span<const api::token_info> more_tokens);
};

/// A stream that stays silent in long prefills.
class beating {
 public:
  virtual ~beating() = default;
  /// Sends a comment where nothing was sent since the last call.
  virtual void beat() = 0;
};

/// Keeps count of who must be kept awake.
class heartbeats {
 public:
  void add(beating* one) { all_.push_back(one); }
  void remove(beating* one) { std::erase(all_, one); }
  void beat() {
    for (beating* one : all_) one->beat();
  }

 private:
  std::vector<beating*> all_;
};

/// What an answer is sent with.
struct answer_channel {
  net::responder to;
  net::header_list headers;  ///< of every answer of the request, such as its id
  heartbeats* beats = nullptr;
  /// Counts the request as its client's until it goes.
  std::shared_ptr<void> share;
};

/// The listener that answers a request as it asked: streamed or whole, in the shape of its
/// endpoint.
[[nodiscard]] std::unique_ptr<listener> http_answer(answer_channel channel,
                                                    const api::answer_identity& identity,
                                                    const generation& of);

/// An error as a whole response.
[[nodiscard]] net::response error_response(const api::api_error& why, net::header_list headers);

}  // namespace octavo::gateway
