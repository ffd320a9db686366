// The one file that knows http_parser.
#include "web/gateway/net/request_parser.hpp"

#include <http_parser.h>

#include <algorithm>
#include <array>
#include <limits>

namespace octavo::net {
namespace {

constexpr std::array<std::string_view, 7> served_methods{"GET",   "HEAD",   "POST",   "PUT",
                                                         "PATCH", "DELETE", "OPTIONS"};
constexpr std::string_view head_end = "\r\n\r\n";

bool is_served(std::string_view method) {
  return std::find(served_methods.begin(), served_methods.end(), method) != served_methods.end();
}

bool is_visible_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

/// The last word of the request line.
std::string_view version_of(std::string_view head) {
  const auto line = head.substr(0, head.find('\r'));
  const auto space = line.rfind(' ');
  return space == std::string_view::npos ? std::string_view{} : line.substr(space + 1);
}

bool is_version(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) && text[6] == '.' &&
         is_digit(text[7]);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_stray_return(std::string_view head) {
  for (auto at = head.find('\r'); at != std::string_view::npos; at = head.find('\r', at + 1)) {
    if (at + 1 == head.size() || head[at + 1] != '\n') return true;
  }
  return false;
}

}  // namespace

/// The library's parser and the callbacks that fill the owner's request.
struct request_parser::grammar {
  explicit grammar(request_parser& of) : owner(of) { reset(); }

  void reset() {
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = this;
    name.clear();
    too_many = false;
  }

  static grammar& of(http_parser* parser) { return *static_cast<grammar*>(parser->data); }

  static int on_url(http_parser* parser, const char* at, std::size_t length) {
    of(parser).owner.request_.target.append(at, length);
    return 0;
  }

  static int on_field(http_parser* parser, const char* at, std::size_t length) {
    of(parser).name.assign(at, length);
    return 0;
  }

  // The head is parsed in one piece, so names and values come whole.
  static int on_value(http_parser* parser, const char* at, std::size_t length) {
    auto& self = of(parser);
    auto& headers = self.owner.request_.headers;
    if (headers.size() >= self.owner.options_.header_count_max) {
      self.too_many = true;
      return 1;
    }
    headers.add(std::move(self.name), std::string(trimmed({at, length})));
    self.name.clear();
    return 0;
  }

  static int on_headers(http_parser* parser) {
    // Whether to change protocols is decided elsewhere. Here is the end of the head,
    // and the parser stops.
    parser->upgrade = 0;
    http_parser_pause(parser, 1);
    return 0;
  }

  static const http_parser_settings& settings() {
    static const http_parser_settings all = [] {
      http_parser_settings s;
      http_parser_settings_init(&s);
      s.on_url = on_url;
      s.on_header_field = on_field;
      s.on_header_value = on_value;
      s.on_headers_complete = on_headers;
      return s;
    }();
    return all;
  }

  void run(std::string_view data) {
    http_parser_execute(&parser, &settings(), data.data(), data.size());
  }

  bool refused() const {
    const auto code = HTTP_PARSER_ERRNO(&parser);
    return code != HPE_OK && code != HPE_PAUSED;
  }

  request_parser& owner;
  http_parser parser{};
  std::string name;
  bool too_many = false;
};

request_parser::request_parser(const server_options& options)
    : options_(options), grammar_(std::make_unique<grammar>(*this)) {
  // The limit is feed_head's; the library's own, which is global, must not be lower.
  static const bool raised = [] {
    http_parser_set_max_header_size(std::numeric_limits<std::uint32_t>::max() / 2);
    return true;
  }();
  static_cast<void>(raised);
}

request_parser::~request_parser() = default;

std::size_t request_parser::feed(std::string_view data) {
  if (state_ == state::head) return feed_head(data);
  if (state_ == state::body) return feed_body(data);
  return 0;
}

std::size_t request_parser::feed_head(std::string_view data) {
  std::size_t used = 0;
  // RFC 9112 §2.2: an empty line before the request line is ignored.
  while (head_.empty() && used < data.size() && (data[used] == '\r' || data[used] == '\n')) ++used;
  while (used < data.size()) {
    const auto line_feed = data.find('\n', used);
    const auto end = line_feed == std::string_view::npos ? data.size() : line_feed + 1;
    head_.append(data.substr(used, end - used));
    used = end;
    if (head_.size() > options_.header_bytes_max) {
      fail(431, "the request line and headers are larger than " +
                    std::to_string(options_.header_bytes_max) + " bytes");
      return used;
    }
    if (line_feed == std::string_view::npos) return used;
    if (!head_.ends_with("\r\n")) {
      fail(400, "a line of the head ends without a carriage return");
      return used;
    }
    if (head_.ends_with(head_end)) {
      parse_head();
      return used;
    }
  }
  return used;
}

void request_parser::parse_head() {
  if (head_.find("\r\n ") != std::string::npos || head_.find("\r\n\t") != std::string::npos) {
    return fail(400, "a header is folded over several lines");
  }
  if (has_stray_return(head_)) return fail(400, "a carriage return stands alone");
  grammar_->run(head_);
  if (grammar_->refused()) return fail_by_grammar();
  check_head();
  head_ = {};
  if (state_ == state::failed) return;
  const bool has_body = chunks_.has_value() || body_left_ > 0;
  state_ = has_body ? state::body : state::complete;
  expects_continue_ = expects_continue_ && has_body;
}

std::size_t request_parser::feed_body(std::string_view data) {
  if (chunks_) {
    const auto used = chunks_->feed(data, request_.body, options_.body_bytes_max);
    switch (chunks_->now()) {
      case chunk_decoder::status::more:
        break;
      case chunk_decoder::status::done:
        state_ = state::complete;
        break;
      case chunk_decoder::status::malformed:
        fail(400, "a chunk of the body is malformed");
        break;
      case chunk_decoder::status::long_line:
        fail(400, "a chunk's extensions, or the trailers, are too long");
        break;
      case chunk_decoder::status::too_big:
        fail_by_size();
        break;
    }
    return used;
  }
  const auto used = std::min<std::uint64_t>(body_left_, data.size());
  request_.body.append(data.substr(0, used));
  body_left_ -= used;
  if (body_left_ == 0) state_ = state::complete;
  return used;
}

void request_parser::fail_by_size() {
  fail(413, "the body is larger than " + std::to_string(options_.body_bytes_max) + " bytes");
}

void request_parser::fail(int status, std::string message) {
  if (state_ == state::failed) return;
  state_ = state::failed;
  failure_ = {status, std::move(message)};
}

void request_parser::fail_by_grammar() {
  const auto code = HTTP_PARSER_ERRNO(&grammar_->parser);
  const std::string what = http_errno_description(code);
  if (grammar_->too_many) {
    return fail(431, "more than " + std::to_string(options_.header_count_max) + " headers");
  }
  const std::string_view head = head_;
  if (code == HPE_INVALID_METHOD && is_token(head.substr(0, head.find(' ')))) {
    return fail(501, "the method is unknown");
  }
  if (is_version(version_of(head)) && !version_of(head).starts_with("HTTP/1.")) {
    return fail(505, "the HTTP version is not 1.0 or 1.1");
  }
  if (code == HPE_UNEXPECTED_CONTENT_LENGTH) {
    return fail(400, "the length of the body is given twice");
  }
  fail(400, "malformed request: " + what);
}

void request_parser::check_head() {
  auto& parser = grammar_->parser;
  request_.method = http_method_str(static_cast<http_method>(parser.method));
  request_.version_minor = parser.http_minor;
  keep_alive_ = http_should_keep_alive(&parser) != 0;
  if (!is_version(version_of(head_))) return fail(400, "the request line has no HTTP version");
  if (parser.http_major != 1 || parser.http_minor > 1) {
    return fail(505, "the HTTP version is not 1.0 or 1.1");
  }
  if (!is_served(request_.method)) return fail(405, request_.method + " is not served");
  for (const auto& [name, value] : request_.headers) {
    if (!is_token(name)) return fail(400, "a header name is not a token");
    if (!is_field_value(value)) return fail(400, "header " + name + " has control characters");
  }
  const auto hosts = request_.headers.count("Host");
  if (hosts > 1 || (hosts == 0 && request_.version_minor == 1)) {
    return fail(400, "there must be one Host header, not " + std::to_string(hosts));
  }
  check_target();
  check_lengths();
}

void request_parser::check_target() {
  const std::string_view target = request_.target;
  if (!is_visible_ascii(target)) return fail(400, "the target has characters that a URI cannot");
  if (target.starts_with("http://") || target.starts_with("https://")) {
    // RFC 9112 §3.2.2: an absolute form must be accepted.
    const auto path = target.find_first_of("/?#", target.find("://") + 3);
    const auto rest =
        path == std::string_view::npos ? std::string() : std::string(target.substr(path));
    request_.target = rest.starts_with('/') ? rest : "/" + rest;
  } else if (!target.starts_with('/') && !(target == "*" && request_.method == "OPTIONS")) {
    return fail(400, "the target must be a path");
  }
  if (request_.target.find('#') != std::string::npos) {
    return fail(400, "the target has a fragment");
  }
  const auto question = request_.target.find('?');
  request_.path = request_.target.substr(0, question);
  if (question != std::string::npos) request_.query = request_.target.substr(question + 1);
}

void request_parser::check_lengths() {
  const auto& headers = request_.headers;
  const auto length = headers.find("Content-Length");
  if (const auto coding = headers.joined("Transfer-Encoding"); !coding.empty()) {
    if (!equal_ignoring_case(coding, "chunked")) {
      return fail(501, "of transfer codings only chunked is served");
    }
    if (length) return fail(400, "both Content-Length and Transfer-Encoding are given");
    if (request_.version_minor == 0) return fail(400, "HTTP/1.0 has no Transfer-Encoding");
    chunks_.emplace();
  } else if (length) {
    if (!is_number(*length)) return fail(400, "Content-Length is not a number");
    body_left_ = grammar_->parser.content_length;
    if (body_left_ > options_.body_bytes_max) return fail_by_size();
  }
  if (const auto expect = headers.find("Expect")) {
    if (!equal_ignoring_case(*expect, "100-continue")) {
      return fail(417, "of expectations only 100-continue is met");
    }
    expects_continue_ = request_.version_minor == 1;
  }
}

request request_parser::take() {
  request whole = std::move(request_);
  request_ = {};
  state_ = state::head;
  expects_continue_ = false;
  chunks_.reset();
  body_left_ = 0;
  grammar_->reset();
  return whole;
}

}  // namespace octavo::net
