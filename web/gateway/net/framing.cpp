// The one file that knows wslay.
#include "web/gateway/net/framing.hpp"

#include <simdjson.h>
#include <wslay/wslay.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace octavo::net {
namespace {

constexpr std::uint16_t protocol_error = 1002;
constexpr std::uint16_t invalid_payload = 1007;
constexpr std::uint16_t too_big = 1009;
constexpr std::size_t reason_bytes_max = 123;

frame_event violation(std::uint16_t code, std::string reason) {
  return {frame_event::type::violation, std::move(reason), false, code};
}

frame_event close_event_of(const std::string& payload) {
  if (payload.empty()) return {frame_event::type::close, {}, false, 1005};
  if (payload.size() == 1) return violation(protocol_error, "a close code has two bytes");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(payload[i]); };
  const auto code = static_cast<std::uint16_t>(byte(0) << 8U | byte(1));
  if (!is_sendable_close_code(code)) return violation(protocol_error, "invalid close code");
  std::string reason = payload.substr(2);
  if (!is_utf8(reason)) return violation(invalid_payload, "the close reason is not UTF-8");
  return {frame_event::type::close, std::move(reason), false, code};
}

bool is_data(std::uint8_t opcode) {
  return opcode == WSLAY_TEXT_FRAME || opcode == WSLAY_BINARY_FRAME;
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// First byte of a character of several.
bool is_lead(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0xC2U && byte <= 0xF4U;
}

bool is_known(std::uint8_t opcode) {
  return opcode <= WSLAY_BINARY_FRAME || (opcode >= WSLAY_CONNECTION_CLOSE && opcode <= WSLAY_PONG);
}

/// The library's writer. A frame goes out in one call, so all share one.
struct frame_writer {
  frame_writer() {
    wslay_frame_callbacks callbacks{};
    callbacks.send_callback = [](const std::uint8_t* data, std::size_t length, int,
                                 void* self) -> ssize_t {
      static_cast<frame_writer*>(self)->out->append(reinterpret_cast<const char*>(data), length);
      return static_cast<ssize_t>(length);
    };
    if (wslay_frame_context_init(&context, &callbacks, this) != 0) throw std::bad_alloc();
  }
  ~frame_writer() { wslay_frame_context_free(context); }
  frame_writer(const frame_writer&) = delete;
  frame_writer& operator=(const frame_writer&) = delete;

  wslay_frame_context_ptr context = nullptr;
  std::string* out = nullptr;
};

}  // namespace

struct frame_reader::frame : wslay_frame_iocb {};

/// The library's reader and the bytes that it may take.
struct frame_reader::wire {
  wire() {
    wslay_frame_callbacks callbacks{};
    callbacks.recv_callback = [](std::uint8_t* into, std::size_t length, int,
                                 void* self) -> ssize_t {
      auto& bytes = static_cast<wire*>(self)->input;
      const auto taken = std::min(length, bytes.size());
      if (taken == 0) return -1;
      std::memcpy(into, bytes.data(), taken);
      bytes.remove_prefix(taken);
      return static_cast<ssize_t>(taken);
    };
    if (wslay_frame_context_init(&context, &callbacks, this) != 0) throw std::bad_alloc();
  }
  ~wire() { wslay_frame_context_free(context); }
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;

  wslay_frame_context_ptr context = nullptr;
  std::string_view input;
};

frame_reader::frame_reader(std::size_t message_bytes_max, bool may_compress)
    : message_bytes_max_(message_bytes_max),
      may_compress_(may_compress),
      wire_(std::make_unique<wire>()) {}

frame_reader::~frame_reader() = default;

std::optional<frame_event> frame_reader::next(std::string_view& input) {
  wire_->input = input;
  std::optional<frame_event> event;
  while (!event) {
    frame piece{};
    const auto got = wslay_frame_recv(wire_->context, &piece);
    if (got == WSLAY_ERR_WANT_READ) break;
    event = got < 0 ? violation(protocol_error, "malformed frame") : take(piece);
  }
  input = wire_->input;
  wire_->input = {};
  return event;
}

std::optional<frame_event> frame_reader::take(const frame& piece) {
  if (frame_offset_ == 0) {
    if (auto objection = begin_frame(piece)) return objection;
  }
  auto& into = wslay_is_ctrl_frame(piece.opcode) ? control_ : message_;
  into.append(reinterpret_cast<const char*>(piece.data), piece.data_length);
  frame_offset_ += piece.data_length;
  if (!is_text_so_far()) return violation(invalid_payload, "the text is not UTF-8");
  if (frame_offset_ < piece.payload_length) return std::nullopt;
  frame_offset_ = 0;
  return piece.fin != 0 ? end_frame(piece) : std::nullopt;
}

/// Judges a frame by its header; an empty one too.
std::optional<frame_event> frame_reader::begin_frame(const frame& piece) {
  if (piece.mask == 0) return violation(protocol_error, "a frame is not masked");
  if (!is_known(piece.opcode)) return violation(protocol_error, "reserved opcode");
  const bool starts_message = is_data(piece.opcode);
  const bool compressed = wslay_get_rsv1(piece.rsv) != 0;
  if ((piece.rsv & ~WSLAY_RSV1_BIT) != 0 || (compressed && !(may_compress_ && starts_message))) {
    return violation(protocol_error, "a reserved bit is set");
  }
  if (wslay_is_ctrl_frame(piece.opcode)) return std::nullopt;
  if (starts_message) {
    if (opcode_ != 0) return violation(protocol_error, "a message starts within another");
    opcode_ = piece.opcode;
    compressed_ = compressed;
  } else if (opcode_ == 0) {
    return violation(protocol_error, "a continuation of nothing");
  }
  if (piece.payload_length > message_bytes_max_ ||
      message_.size() + piece.payload_length > message_bytes_max_) {
    return violation(too_big,
                     "messages have at most " + std::to_string(message_bytes_max_) + " bytes");
  }
  return std::nullopt;
}

bool frame_reader::is_text_so_far() {
  if (opcode_ != WSLAY_TEXT_FRAME || compressed_) return true;
  // A character has at most four bytes, and those behind the first are 10xxxxxx.
  auto whole = message_.size();
  while (whole > checked_ && message_.size() - whole < 3 && is_continuation(message_[whole - 1])) {
    --whole;
  }
  if (whole > checked_ && is_lead(message_[whole - 1])) {
    --whole;
  } else {
    whole = message_.size();
  }
  if (!is_utf8(std::string_view(message_).substr(checked_, whole - checked_))) return false;
  checked_ = whole;
  return true;
}

/// A control frame or the last frame of a message is all there.
std::optional<frame_event> frame_reader::end_frame(const frame& piece) {
  using type = frame_event::type;
  if (wslay_is_ctrl_frame(piece.opcode)) {
    std::string payload;
    payload.swap(control_);
    if (piece.opcode == WSLAY_CONNECTION_CLOSE) return close_event_of(payload);
    return frame_event{piece.opcode == WSLAY_PING ? type::ping : type::pong, std::move(payload)};
  }
  const bool is_text = opcode_ == WSLAY_TEXT_FRAME;
  std::string payload;
  payload.swap(message_);
  opcode_ = 0;
  const auto unchecked = std::exchange(checked_, 0);
  if (is_text && !compressed_ && !is_utf8(std::string_view(payload).substr(unchecked))) {
    return violation(invalid_payload, "the text is not UTF-8");
  }
  return frame_event{is_text ? type::text : type::binary, std::move(payload), compressed_};
}

void append_frame(std::string& out, frame_kind kind, std::string_view payload, bool compressed) {
  static thread_local frame_writer writer;
  wslay_frame_iocb frame{};
  frame.fin = 1;
  frame.rsv = compressed ? WSLAY_RSV1_BIT : WSLAY_RSV_NONE;
  frame.opcode = static_cast<std::uint8_t>(kind);
  frame.payload_length = payload.size();
  frame.data = reinterpret_cast<const std::uint8_t*>(payload.data());
  frame.data_length = payload.size();
  writer.out = &out;
  static_cast<void>(wslay_frame_send(writer.context, &frame));
}

std::string close_payload(std::uint16_t code, std::string_view reason) {
  if (code == 1005) return {};
  auto length = std::min(reason.size(), reason_bytes_max);
  // Not within a character: bytes 10xxxxxx continue one.
  while (length < reason.size() && length > 0 && is_continuation(reason[length])) --length;
  std::string payload{static_cast<char>(code >> 8U), static_cast<char>(code & 0xFFU)};
  payload.append(reason.substr(0, length));
  return payload;
}

bool is_sendable_close_code(std::uint16_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

bool is_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

}  // namespace octavo::net
