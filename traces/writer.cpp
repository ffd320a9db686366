// Renders octavo.trace/1 line by line; see writer.hpp.
#include "traces/writer.hpp"

#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace octavo::traces {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 16;

template <class Integer>
void append_integer(std::string& line, Integer value) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  line.append(digits, end);
}

/// Seconds with exactly the digits that the microseconds need.
void append_seconds(std::string& line, micros time) {
  append_integer(line, time.raw() / 1'000'000);
  auto rest = time.raw() % 1'000'000;
  if (rest == 0) return;
  line += '.';
  for (std::int64_t unit = 100'000; rest > 0; unit /= 10) {
    line += static_cast<char>('0' + rest / unit);
    rest %= unit;
  }
}

void append_text(std::string& line, std::string_view text) {
  using nlohmann::json;
  // Names may hold any bytes; what is not UTF-8 is replaced rather than refused.
  line += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void append_header(std::string& line, const trace& t) {
  line += R"({"format":"octavo.trace/1")";
  if (t.prefix_block.raw() > 0) {
    line += ",\"prefix_block\":";
    append_integer(line, t.prefix_block.raw());
  }
  const char* separator = ",\"notes\":[";
  for (const std::string& note : t.notes) {
    line += separator;
    append_text(line, note);
    separator = ",";
  }
  line += t.notes.empty() ? "}\n" : "]}\n";
}

namespace {

void append_name(std::string& line, const trace& t, std::uint32_t index) {
  if (t.ids.empty()) {
    append_integer(line, index);
  } else {
    append_text(line, t.ids[index]);
  }
}

void append_number(std::string& line, std::string_view key, std::int32_t value) {
  line += key;
  append_integer(line, value);
}

}  // namespace

void append_request(std::string& line, const trace& t, std::uint32_t index) {
  const request& r = t.requests[index];
  line += "{\"id\":";
  append_name(line, t, index);
  if (r.after == none || r.arrival != micros{0}) {
    line += ",\"arrival_s\":";
    append_seconds(line, r.arrival);
  }
  if (r.after != none) {
    line += ",\"after\":";
    append_name(line, t, r.after);
    line += ",\"delay_s\":";
    append_seconds(line, r.delay);
  }
  append_number(line, ",\"prompt_tokens\":", r.prompt_tokens.raw());
  append_number(line, ",\"output_tokens\":", r.output_tokens.raw());
  if (r.max_tokens.raw() > 0) append_number(line, ",\"max_tokens\":", r.max_tokens.raw());
  if (r.priority != 0) append_number(line, ",\"priority\":", r.priority);
  if (r.session != none) append_text(line += ",\"session\":", t.names[r.session]);
  if (r.tenant != none) append_text(line += ",\"tenant\":", t.names[r.tenant]);
  if (r.cancel.raw() >= 0) append_seconds(line += ",\"cancel_s\":", r.cancel);
  const char* separator = ",\"prefix\":[";
  for (const auto id : t.prefix_of(r)) {
    line += separator;
    append_integer(line, id);
    separator = ",";
  }
  line += r.prefix_count > 0 ? "]}\n" : "}\n";
}

namespace {

/// Hands the text over in chunks of some 64 KiB.
template <class Sink>
void render(const trace& t, Sink sink) {
  std::string chunk;
  append_header(chunk, t);
  for (std::uint32_t i = 0; i < t.requests.size(); ++i) {
    append_request(chunk, t, i);
    if (chunk.size() < chunk_bytes) continue;
    sink(chunk);
    chunk.clear();
  }
  sink(chunk);
}

[[noreturn]] void fail_to_write(const std::filesystem::path& file, std::string_view reason) {
  throw input_error(file.string() + ": cannot be written: " + std::string(reason));
}

void write_gzip(const trace& t, const std::filesystem::path& file) {
  const gzFile out = gzopen(file.c_str(), "wb");
  if (out == nullptr) fail_to_write(file, std::strerror(errno));
  bool good = true;
  render(t, [&](const std::string& chunk) {
    good = good &&
           (chunk.empty() || gzwrite(out, chunk.data(), static_cast<unsigned>(chunk.size())) > 0);
  });
  good = gzclose_w(out) == Z_OK && good;
  if (!good) fail_to_write(file, "is the disk full?");
}

}  // namespace

void write_trace(const trace& t, std::ostream& out) {
  render(t, [&](const std::string& chunk) { out << chunk; });
  out.flush();
  if (!out) throw input_error("the trace cannot be written: is the disk full or the reader gone?");
}

void write_trace(const trace& t, const std::filesystem::path& file) {
  if (file.extension() == ".gz") return write_gzip(t, file);
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  if (!out) fail_to_write(file, std::strerror(errno));
  render(t, [&](const std::string& chunk) { out << chunk; });
  out.close();
  if (!out) fail_to_write(file, "is the disk full?");
}

}  // namespace octavo::traces
