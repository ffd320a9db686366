// Which options can be used.
#include "web/gateway/net/options.hpp"

#include <array>
#include <utility>

#include "core/error.hpp"

namespace octavo::net {
namespace {

constexpr std::size_t bytes_min = 1024;

void require_at_least(const char* name, std::size_t given, std::size_t least) {
  if (given >= least) return;
  throw input_error(std::string(name) + " is " + std::to_string(given) +
                    "; allowed is a number from " + std::to_string(least));
}

void require_positive(const char* name, std::chrono::milliseconds given) {
  if (given.count() > 0) return;
  throw input_error(std::string(name) + " is " + std::to_string(given.count()) +
                    " ms; allowed is a positive time");
}

}  // namespace

void validate(const server_options& options) {
  if (options.host.empty()) throw input_error("host is empty; give an address or a name");
  if (options.certificate_file.empty() != options.key_file.empty()) {
    throw input_error("TLS needs both a certificate file and a key file; only one was given");
  }
  require_at_least("connections_max", options.connections_max, 1);
  require_at_least("header_count_max", options.header_count_max, 1);
  require_at_least("header_bytes_max", options.header_bytes_max, bytes_min);
  require_at_least("message_bytes_max", options.message_bytes_max, 125);
  require_at_least("pipelined_bytes_max", options.pipelined_bytes_max, bytes_min);
  require_at_least("received_bytes_max", options.received_bytes_max, bytes_min);
  require_at_least("outbox_bytes_max", options.outbox_bytes_max, bytes_min);
  require_at_least("outbox_bytes_hard_max", options.outbox_bytes_hard_max,
                   options.outbox_bytes_max);
  const std::array times{
      std::pair{"header_timeout", options.header_timeout},
      std::pair{"body_timeout", options.body_timeout},
      std::pair{"idle_timeout", options.idle_timeout},
      std::pair{"write_timeout", options.write_timeout},
      std::pair{"close_timeout", options.close_timeout},
      std::pair{"pong_timeout", options.pong_timeout},
  };
  for (const auto& [name, time] : times) require_positive(name, time);
  if (options.ping_interval.count() < 0) {
    throw input_error("ping_interval is negative; allowed is 0 (off) or a positive time");
  }
}

}  // namespace octavo::net
