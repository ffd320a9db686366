// What all connections of a server share. Internal to this folder; used on the
// network thread, but for the counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "web/gateway/net/deflate.hpp"
#include "web/gateway/net/server.hpp"

namespace octavo::net {

struct server_state {
  server_options options;
  application app;
  bool secure = false;             ///< connections are TLS
  bool draining = false;           ///< no keep-alive any more
  std::size_t received_bytes = 0;  ///< see server_options::received_bytes_max
  std::atomic<std::uint64_t> websockets{0};

  void log(std::string_view line) const {
    if (app.log) app.log(line);
  }

  /// Calls into the application. False where it threw, which is logged.
  template <class F>
  bool guarded(std::string_view what, F&& call) const {
    try {
      std::forward<F>(call)();
      return true;
    } catch (const std::exception& fault) {
      log(std::string(what) + " failed: " + fault.what());
      return false;
    }
  }

  /// Codecs for messages that stand alone; made when first used.
  deflater& shared_deflater(int window_bits);
  inflater& shared_inflater();

  /// An error that the server itself answers, with the application's body.
  [[nodiscard]] response error_response(int status, std::string_view message) const;

 private:
  std::unique_ptr<deflater> deflaters_[16];  ///< by window bits
  std::unique_ptr<inflater> inflater_;
};

/// One connection's part of received_bytes, given back at the end.
class received_share {
 public:
  explicit received_share(server_state& state) : state_(state) {}
  ~received_share() { set(0); }
  received_share(const received_share&) = delete;
  received_share& operator=(const received_share&) = delete;

  /// Takes note that `bytes` have arrived. False where all together are too many.
  bool set(std::size_t bytes) {
    state_.received_bytes += bytes;
    state_.received_bytes -= std::exchange(bytes_, bytes);
    return state_.received_bytes <= state_.options.received_bytes_max;
  }

 private:
  server_state& state_;
  std::size_t bytes_ = 0;
};

}  // namespace octavo::net
