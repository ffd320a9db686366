// Decision logs on disk: see log_file.hpp.
#include "traces/log_file.hpp"

#include <iterator>
#include <map>

namespace octavo::traces {
namespace {

constexpr std::string_view magic = "octavo.log/1\n";

enum entry_kind : std::uint64_t { header_entry = 0, record_entry = 1 };

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

}  // namespace

class log_file_writer::replica_sink final : public log_sink {
 public:
  replica_sink(log_file_writer& file, std::uint32_t index) : file_(file), index_(index) {}

  void on_entry(std::span<const std::byte> payload, const hash128& chain) override {
    file_.put(index_, record_entry, payload);
    byte_writer tail;
    tail.put_fixed64(chain.lo);
    const auto bytes = tail.bytes();
    file_.out_.write(reinterpret_cast<const char*>(bytes.data()),
                     static_cast<std::streamsize>(bytes.size()));
  }

 private:
  log_file_writer& file_;
  std::uint32_t index_;
};

log_file_writer::log_file_writer(const std::filesystem::path& file)
    : path_(file), out_(file, std::ios::binary | std::ios::trunc) {
  out_.write(magic.data(), static_cast<std::streamsize>(magic.size()));
  if (!out_) throw input_error(file.string() + ": cannot be written");
}

log_file_writer::~log_file_writer() = default;

log_sink* log_file_writer::replica(std::uint32_t index, std::string_view header) {
  put(index, header_entry, bytes_of(header));
  // A log that is cut off can be read as far as it goes.
  out_.flush();
  sinks_.push_back(std::make_unique<replica_sink>(*this, index));
  return sinks_.back().get();
}

void log_file_writer::put(std::uint32_t replica, std::uint64_t kind,
                          std::span<const std::byte> bytes) {
  byte_writer head;
  head.put(replica);
  head.put(kind);
  head.put(bytes.size());
  const auto prefix = head.bytes();
  out_.write(reinterpret_cast<const char*>(prefix.data()),
             static_cast<std::streamsize>(prefix.size()));
  out_.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void log_file_writer::close() {
  out_.flush();
  if (!out_) throw input_error(path_.string() + ": could not be written to the end");
}

std::vector<log_entry> read_log(const std::filesystem::path& file, altered_record where) {
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
    throw input_error(file.string() + ": is not a regular file");
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) throw input_error(file.string() + ": cannot be read");
  const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
  const auto all = std::as_bytes(std::span{text});
  if (all.size() < magic.size() || std::string_view{text.data(), magic.size()} != magic) {
    throw input_error(file.string() + ": is no decision log (it does not begin with octavo.log/1)");
  }
  std::vector<log_entry> entries;
  std::map<std::uint32_t, hash128> chains;
  byte_reader reader{all.subspan(magic.size())};
  try {
    while (!reader.done()) {
      log_entry entry;
      entry.replica = static_cast<std::uint32_t>(reader.get());
      const std::uint64_t kind = reader.get();
      if (kind > record_entry) throw std::out_of_range("an unknown kind of entry");
      entry.is_header = kind == header_entry;
      entry.bytes.resize(reader.get_count());
      for (std::byte& b : entry.bytes) b = reader.get_byte();
      hash128& chain = chains[entry.replica];
      if (entry.is_header) {
        chain = chain_of_header(
            {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()});
      } else {
        entry.chain_lo = reader.get_fixed64();
        chain = chain_next(chain, entry.bytes);
        entry.altered = chain.lo != entry.chain_lo;
        if (entry.altered && where == altered_record::refuse) {
          throw input_error(file.string() + ": entry " + std::to_string(entries.size()) +
                            " was altered: its hash does not follow from its bytes");
        }
      }
      entries.push_back(std::move(entry));
    }
  } catch (const std::out_of_range& problem) {
    throw input_error(file.string() + ": entry " + std::to_string(entries.size()) +
                      " cannot be read: " + problem.what());
  }
  return entries;
}

}  // namespace octavo::traces
