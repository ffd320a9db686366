// The one file that knows zlib.
#include "web/gateway/net/deflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

namespace octavo::net {
namespace {

// A message ends with an empty stored block whose last four bytes stay away.
constexpr std::string_view tail("\0\0\xff\xff", 4);
constexpr int memory_level = 5;  // 16 KiB of hash and 16 KiB of symbols
constexpr std::size_t piece_bytes = 16 * 1024;

Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

struct deflater::stream : z_stream {};
struct inflater::stream : z_stream {};

deflater::deflater(int window_bits, bool takeover)
    : stream_(std::make_unique<stream>()), takeover_(takeover) {
  if (deflateInit2(stream_.get(), Z_BEST_SPEED, Z_DEFLATED, -window_bits, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

deflater::~deflater() {
  deflateEnd(stream_.get());
}

std::string deflater::compress(std::string_view message) {
  if (!takeover_) deflateReset(stream_.get());
  std::string out;
  stream_->next_in = bytes_of(message);
  stream_->avail_in = static_cast<uInt>(message.size());
  do {
    const auto filled = out.size();
    out.resize(filled + std::clamp(message.size() / 2, std::size_t{128}, piece_bytes));
    stream_->next_out = bytes_of(out) + filled;
    stream_->avail_out = static_cast<uInt>(out.size() - filled);
    deflate(stream_.get(), Z_SYNC_FLUSH);
    out.resize(out.size() - stream_->avail_out);
  } while (stream_->avail_out == 0);
  out.resize(out.size() - tail.size());
  return out;
}

inflater::inflater(int window_bits, bool takeover)
    : stream_(std::make_unique<stream>()), takeover_(takeover) {
  if (inflateInit2(stream_.get(), -window_bits) != Z_OK) throw std::bad_alloc();
}

inflater::~inflater() {
  inflateEnd(stream_.get());
}

inflater::result inflater::decompress(std::string_view compressed, std::size_t bytes_max,
                                      std::string& out) {
  if (!takeover_) inflateReset(stream_.get());
  std::array<char, piece_bytes> piece;
  for (const auto input : {compressed, tail}) {
    stream_->next_in = bytes_of(input);
    stream_->avail_in = static_cast<uInt>(input.size());
    do {
      stream_->next_out = reinterpret_cast<Bytef*>(piece.data());
      stream_->avail_out = static_cast<uInt>(piece.size());
      const int code = inflate(stream_.get(), Z_SYNC_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return result::malformed;
      const auto made = piece.size() - stream_->avail_out;
      if (out.size() + made > bytes_max) return result::too_big;
      out.append(piece.data(), made);
      // A sender may end its stream with each message; what follows is a new one.
      if (code == Z_STREAM_END) inflateReset(stream_.get());
      if (code == Z_BUF_ERROR) break;
    } while (stream_->avail_in > 0 || stream_->avail_out == 0);
  }
  return result::ok;
}

}  // namespace octavo::net
