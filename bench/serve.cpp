// How much `octavo serve` carries: streams and idle sockets by the thousand, vanishing clients.
// Arguments: any of streams, idle, vanish (all). The server is a child process that simulates
// its device, so what is measured is the way from a step's end to the client.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "bench/support/child_server.hpp"
#include "bench/support/crowd.hpp"

using namespace octavo::bench;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr double step_s = 0.05;
constexpr auto patience = std::chrono::seconds{30};

std::vector<std::string> server_arguments() {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return {here / "octavo", "serve", "--device", "sim", "--step-time", "50ms",
          // The next step is planned while one runs, so that steps follow without a gap.
          "--run-ahead", "1", "--num-gpu-blocks-override", "32768", "--max-num-seqs", "1024",
          "--max-num-batched-tokens", "65536", "--max-model-len", "2048", "--placeholder", "clock",
          "--port", "0"};
}

double seconds(steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

double kib(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1024;
}

double own_processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return s(usage.ru_utime) + s(usage.ru_stime);
}

/// Of sorted values; `share` from 0 to 1.
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share * last + 0.5)];
}

void row(const char* name, double value, const char* unit, const char* note = "") {
  std::printf("  %-44s %12.1f %-10s %s\n", name, value, unit, note);
}

/// Says what went wrong. True where nothing did.
bool report(const crowd& all) {
  for (const std::string& what : all.problems()) std::printf("  WRONG: %s\n", what.c_str());
  if (all.problem_count() > all.problems().size()) {
    std::printf("  WRONG: %zu times in all\n", all.problem_count());
  }
  return all.problem_count() == 0;
}

bool expect(bool good, const std::string& what) {
  if (!good) std::printf("  WRONG: %s\n", what.c_str());
  return good;
}

// ---- streams -----------------------------------------------------------------

constexpr std::size_t streams = 1000;
constexpr std::int64_t tokens_per_stream = 200;

/// Checks every event of every stream and times every token.
class timed_streams final : public crowd {
 public:
  using crowd::crowd;

  void ask_all() {
    for (const auto& client : clients()) {
      const std::string number = std::to_string(client->number());
      client->ask(R"({"type":"response.create","id":"s)" + number + R"(","input":"question )" +
                  number + R"(","max_output_tokens":)" + std::to_string(tokens_per_stream) +
                  R"(,"ignore_eos":true})");
    }
  }

  void message(stream_client& by, std::string_view json, moment at) override {
    stream& s = streams_[by.number()];
    check_sequence(by, s, json);
    if (json.starts_with(R"({"type":"response.output_text.delta")")) {
      take_stamps(by, s, json, at);
    } else if (json.starts_with(R"({"type":"response.incomplete")")) {
      finish(by, s);
    } else if (json.starts_with(R"({"type":"error")") ||
               json.starts_with(R"({"type":"response.failed")") ||
               json.starts_with(R"({"type":"response.completed")")) {
      problem("stream " + std::to_string(by.number()) + ": " + std::string{json});
    }
  }

  [[nodiscard]] std::size_t finished() const { return finished_; }
  [[nodiscard]] std::size_t tokens() const { return received_.size(); }
  /// Tokens received per second while every stream was under way.
  [[nodiscard]] double rate() const {
    const auto begin_us = std::ranges::max(streams_, {}, &stream::first_at_us).first_at_us;
    const auto end_us = std::ranges::min(streams_, {}, &stream::last_at_us).last_at_us;
    const auto within = std::ranges::count_if(
        received_, [&](const token& t) { return t.at_us > begin_us && t.at_us <= end_us; });
    return end_us > begin_us ? static_cast<double>(within) / (end_us - begin_us) * 1e6 : 0;
  }
  /// Between the tokens of a stream, by the stamps.
  [[nodiscard]] double mean_gap_ms() const {
    double sum_us = 0;
    for (const stream& s : streams_) {
      sum_us += static_cast<double>(s.last_stamp_us - s.first_stamp_us);
    }
    return sum_us * 1e-3 / static_cast<double>(received_.size() - streams_.size());
  }
  [[nodiscard]] std::vector<double> sorted_latencies_us() const {
    std::vector<double> all;
    for (const token& t : received_) all.push_back(t.latency_us);
    std::ranges::sort(all);
    return all;
  }

 private:
  struct stream {
    std::int64_t tokens = 0;
    std::int64_t next_sequence_number = 0;
    std::int64_t first_stamp_us = 0;
    std::int64_t last_stamp_us = 0;
    double first_at_us = 0;
    double last_at_us = 0;
  };
  struct token {
    double at_us = 0;
    double latency_us = 0;
  };

  static std::int64_t number_at(std::string_view json, std::size_t at) {
    std::int64_t number = -1;
    std::from_chars(json.data() + at, json.data() + json.size(), number);
    return number;
  }

  void check_sequence(const stream_client& by, stream& s, std::string_view json) {
    constexpr std::string_view field = R"("sequence_number":)";
    const auto at = json.rfind(field);
    const auto number = at == json.npos ? -1 : number_at(json, at + field.size());
    if (number != s.next_sequence_number++) {
      problem("stream " + std::to_string(by.number()) + ": event " +
              std::to_string(s.next_sequence_number - 1) + " has number " + std::to_string(number));
    }
  }

  // Deltas are stamps, each followed by a space; a slow reader gets several at once.
  void take_stamps(const stream_client& by, stream& s, std::string_view json, moment at) {
    constexpr std::string_view field = R"("delta":")";
    const auto now_us = std::chrono::duration<double, std::micro>(at.time_since_epoch()).count();
    std::size_t begin = json.find(field);
    begin = begin == json.npos ? json.size() : begin + field.size();
    for (auto end = json.find_first_of(" \"", begin); end < json.size() && json[end] == ' ';
         begin = end + 1, end = json.find_first_of(" \"", begin)) {
      const std::int64_t stamp = number_at(json, begin);
      if (stamp < s.last_stamp_us) problem("stream " + std::to_string(by.number()) + ": time fell");
      if (s.tokens++ == 0) {
        s.first_stamp_us = stamp;
        s.first_at_us = now_us;
      }
      s.last_stamp_us = stamp;
      s.last_at_us = now_us;
      received_.push_back({now_us, now_us - static_cast<double>(stamp)});
    }
  }

  void finish(const stream_client& by, const stream& s) {
    ++finished_;
    if (s.tokens != tokens_per_stream) {
      problem("stream " + std::to_string(by.number()) + " has " + std::to_string(s.tokens) +
              " tokens");
    }
  }

  std::vector<stream> streams_ = std::vector<stream>(streams);
  std::vector<token> received_;
  std::size_t finished_ = 0;
};

bool measure_streams() {
  std::printf("%zu WebSocket streams, one token each every %.0f ms\n", streams, step_s * 1e3);
  const child_server server{server_arguments()};
  const std::int64_t before_bytes = server.resident_bytes();
  timed_streams all{server.port()};
  all.open(streams, [](std::size_t) { return wire_kind::websocket; });
  bool good = expect(all.run_until([&] { return all.opened_count() == streams; }, patience),
                     "not all could connect");
  const std::int64_t idle_bytes = server.resident_bytes();
  const double server_s = server.processor_seconds();
  const double client_s = own_processor_seconds();
  const moment start = steady_clock::now();
  all.ask_all();
  std::int64_t peak_bytes = 0;
  const auto finished = [&] {
    peak_bytes = std::max(peak_bytes, server.resident_bytes());
    return all.finished() + all.problem_count() >= streams;
  };
  good &= expect(all.run_until(finished, 2 * patience), "not all streams have ended");
  const double wall_s = seconds(steady_clock::now() - start);
  row("tokens received", static_cast<double>(all.tokens()), "");
  row("tokens per second, while all stream", all.rate(), "1/s", "goal: 20000");
  row("between the tokens of a stream, mean", all.mean_gap_ms(), "ms");
  const auto latencies = all.sorted_latencies_us();
  row("step's end to receipt, p50", quantile(latencies, 0.5) * 1e-3, "ms");
  row("step's end to receipt, p99", quantile(latencies, 0.99) * 1e-3, "ms");
  row("step's end to receipt, max", quantile(latencies, 1) * 1e-3, "ms");
  const auto each = static_cast<double>(streams);
  row("server memory before", kib(before_bytes), "KiB");
  row("  per connection, idle", kib(idle_bytes - before_bytes) / each, "KiB");
  row("  per connection, streaming (peak)", kib(peak_bytes - before_bytes) / each, "KiB",
      "goal: at most 64");
  row("server's processor share", (server.processor_seconds() - server_s) / wall_s * 100, "%",
      "of one core");
  row("client's processor share", (own_processor_seconds() - client_s) / wall_s * 100, "%");
  return report(all) && good;
}

// ---- idle connections --------------------------------------------------------

constexpr std::size_t idle_connections = 10'000;

class idle_crowd final : public crowd {
 public:
  using crowd::crowd;
  void message(stream_client& by, std::string_view json, moment) override {
    problem("client " + std::to_string(by.number()) + " was told " + std::string{json});
  }
};

/// The hard limit of open files, which is now in force.
std::size_t raise_open_file_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

bool measure_idle(std::size_t open_files_max) {
  std::printf("%zu idle WebSockets\n", idle_connections);
  if (open_files_max < idle_connections + 200) {
    std::printf("  skipped: the hard limit of open files is %zu\n", open_files_max);
    return true;
  }
  const child_server server{server_arguments()};
  const std::int64_t before_bytes = server.resident_bytes();
  const int before_files = server.open_files();
  bool good = true;
  {
    idle_crowd all{server.port()};
    const moment start = steady_clock::now();
    all.open(idle_connections, [](std::size_t) { return wire_kind::websocket; });
    good &= expect(all.run_until([&] { return all.opened_count() == idle_connections; }, patience),
                   "only " + std::to_string(all.opened_count()) + " could connect");
    row("connected and upgraded", idle_connections / seconds(all.last_opened_at() - start), "1/s");
    row("server memory before", kib(before_bytes), "KiB");
    row("  per connection", kib(server.resident_bytes() - before_bytes) / idle_connections, "KiB");
    const double server_s = server.processor_seconds();
    all.run_for(3s);
    row("server's processor share", (server.processor_seconds() - server_s) / 3 * 100, "%",
        "of one core");
    good &= report(all);
  }
  for (int i = 0; i < 500 && server.open_files() > before_files; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  row("files open after they closed", server.open_files() - before_files, "more");
  return expect(server.open_files() <= before_files, "the server keeps files open") && good;
}

// ---- clients that vanish -----------------------------------------------------

constexpr std::size_t vanishing = 1000;
constexpr int rounds = 10;
constexpr int last_heard_max = 40;

/// Each client asks for more than it stays to hear.
class vanishing_crowd final : public crowd {
 public:
  vanishing_crowd(std::uint16_t port, std::uint32_t seed) : crowd(port), dice_(seed) {
    for (int& left : left_) left = static_cast<int>(dice_() % (last_heard_max + 1));
  }

  void begin(stream_client& by) override {
    const std::string number = std::to_string(by.number());
    by.ask(by.kind() == wire_kind::websocket
               ? R"({"type":"response.create","input":"question )" + number +
                     R"(","max_output_tokens":200,"ignore_eos":true})"
               : R"({"prompt":"question )" + number +
                     R"(","max_tokens":200,"ignore_eos":true,"stream":true})");
    if (left_[by.number()] == 0) leave(by);
  }
  void message(stream_client& by, std::string_view json, moment) override {
    if (json.find(R"("error":{)") != json.npos) problem(std::string{json});
    const bool token = by.kind() == wire_kind::events ||
                       json.starts_with(R"({"type":"response.output_text.delta")");
    if (!token) return;
    ++tokens_;
    if (--left_[by.number()] <= 0) leave(by);
  }

  [[nodiscard]] std::size_t gone() const { return gone_; }
  [[nodiscard]] std::size_t tokens() const { return tokens_; }

 private:
  void leave(stream_client& by) {
    by.vanish(by.number() / 2 % 2 == 0);
    ++gone_;
  }

  std::mt19937 dice_;
  std::vector<int> left_ = std::vector<int>(vanishing);
  std::size_t gone_ = 0;
  std::size_t tokens_ = 0;
};

nlohmann::json status_of(const child_server& server) {
  octavo::testing::raw_client client{server.port()};
  const auto answer = client.ask("GET /v1/status HTTP/1.1\r\nHost: test\r\n\r\n");
  if (answer.status != 200) throw std::runtime_error("/v1/status says: " + answer.body);
  return nlohmann::json::parse(answer.body);
}

struct round_end {
  std::size_t tokens = 0;
  std::int64_t blocks_used = 0;
  int open_files = 0;
  std::int64_t resident_bytes = 0;
};

/// What the server still holds when it had five seconds to let go.
round_end after(const child_server& server, int files_expected) {
  round_end end;
  const moment deadline = steady_clock::now() + 5s;
  for (;;) {
    const nlohmann::json status = status_of(server);
    std::this_thread::sleep_for(20ms);  // the question's own connection closes, too
    end.blocks_used = status["blocks_used"];
    end.open_files = server.open_files();
    const bool clean = end.blocks_used == 0 && status["running"] == 0 && status["waiting"] == 0 &&
                       end.open_files <= files_expected;
    if (clean || steady_clock::now() > deadline) break;
  }
  end.resident_bytes = server.resident_bytes();
  return end;
}

bool measure_vanishing() {
  std::printf("%zu clients that vanish, half of them WebSockets, %d rounds\n", vanishing, rounds);
  std::printf("  %5s %14s %12s %11s %14s\n", "round", "tokens heard", "blocks used", "open files",
              "memory, KiB");
  const child_server server{server_arguments()};
  const int files_before = server.open_files();
  bool good = true;
  std::vector<round_end> ends;
  for (int i = 0; i < rounds; ++i) {
    std::size_t tokens = 0;
    {
      vanishing_crowd all{server.port(), static_cast<std::uint32_t>(i)};
      all.open(vanishing,
               [](std::size_t n) { return n % 2 == 0 ? wire_kind::websocket : wire_kind::events; });
      good &= expect(all.run_until([&] { return all.gone() == vanishing; }, patience),
                     "only " + std::to_string(all.gone()) + " heard what they waited for");
      good &= report(all);
      tokens = all.tokens();
    }
    round_end end = after(server, ends.empty() ? files_before : ends.front().open_files);
    end.tokens = tokens;
    std::printf("  %5d %14zu %12lld %11d %14.0f\n", i + 1, end.tokens,
                static_cast<long long>(end.blocks_used), end.open_files, kib(end.resident_bytes));
    ends.push_back(end);
    good &= expect(end.blocks_used == 0, "blocks are still used");
    good &= expect(end.open_files <= ends.front().open_files, "files are still open");
  }
  // An allocator's own slack wanders; what every client leaves behind adds up.
  constexpr std::int64_t kept_bytes_max = 512;
  const std::int64_t kept =
      (ends.back().resident_bytes - ends.front().resident_bytes) / (vanishing * (rounds - 1));
  row("memory kept of each client after round 1", static_cast<double>(kept), "bytes");
  return expect(kept <= kept_bytes_max, "memory is not given back") && good;
}

}  // namespace

int main(int argc, char** argv) {
  const std::set<std::string> wanted(argv + 1, argv + argc);
  const auto asked = [&](const char* part) { return wanted.empty() || wanted.contains(part); };
  const std::size_t open_files_max = raise_open_file_limit();
  try {
    bool good = true;
    if (asked("streams")) good &= measure_streams();
    if (asked("idle")) good &= measure_idle(open_files_max);
    if (asked("vanish")) good &= measure_vanishing();
    return good ? 0 : 1;
  } catch (const std::exception& problem) {
    std::printf("  WRONG: %s\n", problem.what());
    return 1;
  }
}
