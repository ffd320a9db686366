// WebSocket frames (RFC 6455 §5): bytes to whole messages and back. wslay does
// the frame format; the order of frames, sizes and close codes are checked here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::net {

enum class frame_kind : std::uint8_t { text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

struct frame_event {
  enum class type { text, binary, ping, pong, close, violation };
  type what = type::violation;
  std::string payload;      ///< of a message, ping or pong; the reason of the others
  bool compressed = false;  ///< RSV1: `payload` is still deflated, and text not yet checked
  std::uint16_t code = 0;   ///< of a close (1005: none given), or to answer a violation with
};

/// Reads what a client sends: masked frames, fragments reassembled up to
/// `message_bytes_max`, text checked for UTF-8.
class frame_reader {
 public:
  frame_reader(std::size_t message_bytes_max, bool may_compress);
  ~frame_reader();
  frame_reader(const frame_reader&) = delete;
  frame_reader& operator=(const frame_reader&) = delete;

  /// The next event, or nothing where `input`, which is advanced, has run out.
  /// Not to be called after a violation or a close.
  [[nodiscard]] std::optional<frame_event> next(std::string_view& input);
  /// Of the message under way.
  [[nodiscard]] std::size_t buffered_bytes() const { return message_.size(); }

 private:
  struct frame;
  struct wire;

  std::optional<frame_event> take(const frame& piece);
  std::optional<frame_event> begin_frame(const frame& piece);
  std::optional<frame_event> end_frame(const frame& piece);
  /// Whether message_ is UTF-8 as far as it goes; its last character may be cut.
  bool is_text_so_far();

  const std::size_t message_bytes_max_;
  const bool may_compress_;
  std::unique_ptr<wire> wire_;
  std::string message_;
  std::size_t checked_ = 0;  ///< bytes of message_ known to be UTF-8
  std::string control_;
  std::uint8_t opcode_ = 0;  ///< of the message under way; 0: none
  bool compressed_ = false;
  std::uint64_t frame_offset_ = 0;
};

/// Appends one unfragmented, unmasked frame to `out`.
void append_frame(std::string& out, frame_kind kind, std::string_view payload,
                  bool compressed = false);

/// Payload of a close frame; the reason is cut to 123 bytes at a character. Code
/// 1005 gives an empty one.
[[nodiscard]] std::string close_payload(std::uint16_t code, std::string_view reason);

/// Whether a close frame may carry this code.
[[nodiscard]] bool is_sendable_close_code(std::uint16_t code);

[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace octavo::net
