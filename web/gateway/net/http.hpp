// Requests and responses as values, and the rules for what may stand in a
// header (RFC 9110, RFC 9112).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo::net {

/// Header fields in order of arrival. Names compare without case.
class header_list {
 public:
  using field = std::pair<std::string, std::string>;

  header_list() = default;
  header_list(std::initializer_list<field> fields) : fields_(fields) {}

  void add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  /// Replaces every field of that name.
  void set(std::string_view name, std::string value);
  /// Value of the first field of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  /// All values of that name, joined by ", " as RFC 9110 §5.3 allows; empty
  /// where there is none.
  [[nodiscard]] std::string joined(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const;
  /// Whether the comma-separated values of that name hold `token` (no case).
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;

  [[nodiscard]] auto begin() const { return fields_.begin(); }
  [[nodiscard]] auto end() const { return fields_.end(); }
  [[nodiscard]] std::size_t size() const { return fields_.size(); }
  [[nodiscard]] bool empty() const { return fields_.empty(); }

 private:
  std::vector<field> fields_;
};

struct request {
  std::string method;  ///< GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS
  std::string target;  ///< as sent, but an absolute form is cut to its path and query
  std::string path;    ///< target up to '?', not percent-decoded
  std::string query;   ///< behind '?', not decoded; empty where there is none
  header_list headers;
  std::string body;
  std::string remote_address;  ///< 192.0.2.1:4711 or [2001:db8::1]:4711
  int version_minor = 1;       ///< of HTTP/1
  bool secure = false;         ///< came over TLS
};

/// Content-Length, Transfer-Encoding and Connection are the server's own: not
/// to be set here.
struct response {
  int status = 200;
  header_list headers;
  std::string body;
};

/// Reason phrase of a status; "Unknown" where it has none.
[[nodiscard]] std::string_view reason_phrase(int status);

[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b);
[[nodiscard]] std::string_view trimmed(std::string_view text);  ///< of spaces and tabs

/// A token of RFC 9110 §5.6.2: what names of headers and methods are made of.
[[nodiscard]] bool is_token(std::string_view text);
/// Visible characters, spaces, tabs and bytes from 0x80: no CR, LF or NUL.
[[nodiscard]] bool is_field_value(std::string_view text);

/// Throws input_error naming a field that cannot be sent: bad name, a value
/// with control characters, or a name that belongs to the server.
void validate_response_headers(const header_list& headers);

/// Status line and headers up to and with the empty line.
[[nodiscard]] std::string format_head(int status, const header_list& headers,
                                      const header_list& own);

}  // namespace octavo::net
