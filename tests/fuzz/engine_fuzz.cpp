// Fuzzes the engine's core: random commands over random tiny configurations,
// with the invariants after every step and a replay of the log at the end.
//
//   engine_fuzz --commands 1000000 --seed 1
//
// Cases run in a child process, so that a failed assertion is a finding like
// any other. A finding is shrunk and printed as a test case; exit code 1.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>

#include "tests/support/engine_commands.hpp"

namespace octavo::test {
namespace {

/// Counter-based: the k-th number of a case depends on its seed and k alone.
class dice {
 public:
  explicit dice(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t next() { return mix(seed_, ++counter_); }
  /// 0 .. below - 1.
  std::int32_t roll(std::int32_t below) {
    return static_cast<std::int32_t>(next() % static_cast<std::uint64_t>(below));
  }
  std::int32_t between(std::int32_t least, std::int32_t most) {
    return least + roll(most - least + 1);
  }
  bool one_in(std::int32_t n) { return roll(n) == 0; }

 private:
  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

engine_config random_config(dice& d) {
  constexpr std::array policies{policy_kind::continuous, policy_kind::continuous,
                                policy_kind::prefill_first, policy_kind::reserve,
                                policy_kind::static_batch};
  engine_config c;
  c.policy = policies[static_cast<std::size_t>(d.roll(5))];
  c.scheduling_policy = static_cast<ordering_kind>(d.roll(3));
  c.block_size = token_count{d.between(1, 5)};
  c.num_blocks = block_count{d.between(3, 24)};
  c.max_model_len = token_count{d.between(4, 48)};
  c.max_num_seqs = d.between(1, 6);
  c.max_num_batched_tokens = token_count{c.max_num_seqs + d.roll(24)};
  c.enable_chunked_prefill = !d.one_in(4);
  if (!c.enable_chunked_prefill) {
    c.max_num_batched_tokens = std::max(c.max_num_batched_tokens, c.max_model_len);
  }
  c.long_prefill_token_threshold = token_count{d.one_in(3) ? d.between(1, 8) : 0};
  c.enable_prefix_caching = !d.one_in(3);
  c.scheduler_reserve_full_isl = !d.one_in(3);
  c.watermark = block_count{d.one_in(3) ? d.between(1, 3) : 0};
  c.watermark = std::min(c.watermark, c.num_blocks - block_count{1});
  c.max_preemptions = d.roll(4);
  c.run_ahead = d.roll(2);
  c.max_num_queued_reqs = d.one_in(6) ? d.between(1, 4) : 0;
  c.max_num_queued_tokens = d.one_in(6) ? d.between(10, 60) : 0;
  if (d.one_in(5)) c.layout = kv_layout::contiguous;
  if (d.one_in(4)) {
    c.enable_prefix_caching = false;
    const kv_group windowed{token_count{d.between(1, 12)}};
    c.kv_groups = d.one_in(2) ? std::vector{windowed} : std::vector{kv_group{}, windowed};
  }
  return c;
}

fake_request random_request(dice& d, const engine_config& c, std::uint64_t id) {
  fake_request r;
  r.id = id;
  const std::int32_t longest = std::max(2, c.max_model_len.raw());
  r.prompt = d.one_in(20) ? d.between(0, longest + 2) : d.between(1, std::max(1, longest * 2 / 3));
  r.max_tokens = d.one_in(20) ? d.between(0, longest) : d.between(1, std::max(1, longest / 2));
  r.output = d.one_in(2) ? d.between(1, longest) : r.output;
  r.n = d.one_in(4) ? d.between(0, c.max_num_seqs + 1) : 1;
  r.priority = d.roll(3);
  if (d.one_in(2)) {
    r.family = static_cast<std::uint64_t>(d.between(1, 3));
    r.shared = d.between(0, std::max(0, r.prompt));
    if (d.one_in(8)) r.adapter = "x";
    if (d.one_in(8)) r.salt = "x";
  }
  return r;
}

command random_command(dice& d, const engine_config& c, std::uint64_t& next_id) {
  const std::int32_t which = d.roll(100);
  if (which < 22) return submit{random_request(d, c, next_id++)};
  if (which < 27) {
    const auto back = static_cast<std::uint64_t>(d.between(0, 12));
    return cancel{next_id > back ? next_id - back : 0};
  }
  if (which < 29) return wake{};
  if (which < 31) return advance_clock{d.between(0, 120'000)};
  if (which < 32) return fail_step{};
  return complete_step{d.one_in(4) ? d.next() & d.next() : 0};
}

constexpr int commands_per_case = 250;

fuzz_case random_case(std::uint64_t seed) {
  dice d{seed};
  fuzz_case made;
  made.config = random_config(d);
  made.options = {d.one_in(3), !d.one_in(4), d.one_in(2), d.one_in(3)};
  std::uint64_t next_id = 1;
  for (int i = 0; i < commands_per_case; ++i) {
    made.commands.push_back(random_command(d, made.config, next_id));
  }
  if (d.one_in(3)) {
    const auto at = d.between(commands_per_case / 2, commands_per_case);
    made.commands.insert(made.commands.begin() + at, drain{});
  }
  return made;
}

/// Whether the case breaks something, by running it in a child process.
bool breaks(const fuzz_case& c, bool loud) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);  // a case takes milliseconds: anything longer is an endless loop
    if (!loud && std::freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    try {
      execute(c);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::fflush(stderr);
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status != 0;
}

/// Drops commands, in ever smaller runs, while the case still breaks.
fuzz_case shrunk(fuzz_case c) {
  for (std::size_t run = c.commands.size() / 2; run > 0;) {
    bool dropped = false;
    for (std::size_t at = 0; at + run <= c.commands.size();) {
      fuzz_case smaller = c;
      const auto first = smaller.commands.begin() + static_cast<std::ptrdiff_t>(at);
      smaller.commands.erase(first, first + static_cast<std::ptrdiff_t>(run));
      if (breaks(smaller, false)) {
        c = std::move(smaller);
        dropped = true;
      } else {
        at += run;
      }
    }
    if (!dropped || run > 1) run /= 2;
  }
  return c;
}

/// Runs cases in one child, which notes the seed it is at.
std::optional<std::uint64_t> first_that_breaks(std::uint64_t first, std::uint64_t end) {
  auto* at = static_cast<volatile std::uint64_t*>(mmap(
      nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (at == MAP_FAILED) return std::nullopt;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    for (std::uint64_t seed = first; seed < end; ++seed) {
      *at = seed;
      alarm(10);
      try {
        execute(random_case(seed));
      } catch (const std::exception&) {
        _exit(1);
      }
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const std::uint64_t seed = *at;
  munmap(const_cast<std::uint64_t*>(at), sizeof(std::uint64_t));
  return status == 0 ? std::nullopt : std::optional{seed};
}

int fuzz(std::uint64_t commands, std::uint64_t seed) {
  const std::uint64_t cases = (commands + commands_per_case - 1) / commands_per_case;
  const std::uint64_t first = mix(seed) >> 16;
  if (const auto bad = first_that_breaks(first, first + cases)) {
    std::printf("case %llu breaks; shrinking it ...\n", static_cast<unsigned long long>(*bad));
    const fuzz_case small = shrunk(random_case(*bad));
    std::fflush(stdout);
    breaks(small, true);
    std::printf("seed %llu, case %llu:\n\n%s", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(*bad), code_of(small).c_str());
    return 1;
  }
  std::printf("%llu commands in %llu cases, seed %llu: all invariants hold, all logs replay\n",
              static_cast<unsigned long long>(cases * commands_per_case),
              static_cast<unsigned long long>(cases), static_cast<unsigned long long>(seed));
  return 0;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace
}  // namespace octavo::test

int main(int argc, char** argv) {
  std::uint64_t commands = 1'000'000;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto value = i + 1 < argc ? octavo::test::number(argv[i + 1]) : std::nullopt;
    if (!value || (name != "--commands" && name != "--seed")) {
      std::fprintf(stderr, "usage: engine_fuzz [--commands N] [--seed S], whole numbers from 0\n");
      return 2;
    }
    (name == "--commands" ? commands : seed) = *value;
  }
  return octavo::test::fuzz(commands, seed);
}
