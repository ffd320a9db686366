// Synthetic traces; see synth.hpp.
#include "traces/synth.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "traces/random.hpp"

namespace octavo::traces {
namespace {

/// Purposes of randomness; a new one goes to the end, or old seeds change.
enum stream : std::uint64_t {
  gaps,
  thinning,
  prompts,
  outputs,
  prefix_choice,
  turn_counts,
  thinks
};

constexpr std::int32_t length_max = 100'000'000;
constexpr double time_s_max = 1e9;  // what readers take

void require(bool good, std::string_view option, double found, std::string_view expected) {
  if (good) return;
  std::string number = std::to_string(found);
  throw input_error("synth: " + std::string(option) + ": found " + number + "; expected " +
                    std::string(expected));
}

void check_length(std::string_view name, const length_options& o) {
  const auto option = [&](std::string_view part) {
    return std::string(name) + " " + std::string(part);
  };
  require(o.median_tokens >= 1 && o.median_tokens <= length_max, option("median"), o.median_tokens,
          "1 to 100000000 tokens");
  require(o.sigma >= 0 && o.sigma <= 5, option("sigma"), o.sigma, "0 to 5");
  require(o.min.raw() >= 1, option("min"), o.min.raw(), "1 or more tokens");
  require(o.max >= o.min && o.max.raw() <= length_max, option("max"), o.max.raw(),
          "the min or more, at most 100000000 tokens");
}

void check(const synth_options& o) {
  require(o.requests >= 1 && o.requests <= 100'000'000, "requests", o.requests, "1 to 100000000");
  require(o.rate_rps >= 1e-6 && o.rate_rps <= 1e6, "rate", o.rate_rps,
          "0.000001 to 1000000 requests per second");
  require(o.cv >= 0.01 && o.cv <= 100, "cv", o.cv, "0.01 to 100");
  require(o.period_s >= 1 && o.period_s <= 1e9, "period", o.period_s, "1 to 1000000000 seconds");
  require(o.peak_to_trough >= 1 && o.peak_to_trough <= 1e6, "peak to trough", o.peak_to_trough,
          "1 to 1000000");
  check_length("prompt", o.prompt);
  check_length("output", o.output);
  require(o.prefixes <= 1'000'000, "prefixes", o.prefixes, "0 to 1000000");
  require(o.prefix_tokens.raw() >= 1 && o.prefix_tokens.raw() <= length_max, "prefix tokens",
          o.prefix_tokens.raw(), "1 to 100000000");
  require(o.zipf >= 0 && o.zipf <= 10, "zipf", o.zipf, "0 to 10");
  require(o.prefix_block.raw() >= 1 && o.prefix_block.raw() <= 65536, "prefix block",
          o.prefix_block.raw(), "1 to 65536 tokens");
  require(o.turns_min >= 1, "turns min", o.turns_min, "1 or more");
  require(o.turns_max >= o.turns_min && o.turns_max <= 10'000, "turns max", o.turns_max,
          "the min or more, at most 10000");
  require(o.think_s >= 0 && o.think_s <= 1e6, "think", o.think_s, "0 to 1000000 seconds");
  require(o.context_max.raw() >= 0, "context max", o.context_max.raw(), "0 or more tokens");
}

/// The moments at which sessions start, in order.
class arrival_clock {
 public:
  explicit arrival_clock(const synth_options& o)
      : o_(o),
        mean_gap_s_((o.turns_min + o.turns_max) * 0.5 / o.rate_rps),
        gaps_(o.seed, stream::gaps),
        thinning_(o.seed, stream::thinning) {}

  /// The moment after the last one.
  micros next() {
    if (o_.arrivals == arrival_kind::at_once) return micros{0};
    if (o_.arrivals == arrival_kind::diurnal) {
      step_diurnal();
    } else if (o_.arrivals != arrival_kind::uniform || index_ > 0) {
      now_s_ += gap(index_) * mean_gap_s_;
    }
    ++index_;
    require(now_s_ <= time_s_max, "last arrival", now_s_, "at most 1000000000 seconds");
    return micros{std::llround(now_s_ * 1e6)};
  }

 private:
  [[nodiscard]] double gap(std::uint64_t index) const {
    if (o_.arrivals == arrival_kind::uniform) return 1;
    if (o_.arrivals == arrival_kind::poisson) return gaps_.exponential(index);
    const double shape = 1 / (o_.cv * o_.cv);
    return gaps_.gamma(index, shape) / shape;
  }

  /// Thinning (Lewis and Shedler, 1979): candidates at the peak rate, kept as the rate allows.
  void step_diurnal() {
    const double swing = (o_.peak_to_trough - 1) / (o_.peak_to_trough + 1);
    const double peak = 1 + swing;
    for (;; ++index_) {
      now_s_ += gaps_.exponential(index_) * mean_gap_s_ / peak;
      const double relative = 1 - swing * portable_cos_turns(now_s_ / o_.period_s);
      if (thinning_.uniform(index_) * peak < relative) return;
    }
  }

  const synth_options& o_;
  double mean_gap_s_;
  random_stream gaps_;
  random_stream thinning_;
  double now_s_ = 0;
  std::uint64_t index_ = 0;
};

/// Draws lengths of one kind.
class length_draw {
 public:
  length_draw(const length_options& o, random_stream source)
      : o_(o), log_median_(portable_log(o.median_tokens)), source_(source) {}

  [[nodiscard]] token_count operator()(std::uint64_t index) const {
    double tokens = o_.median_tokens;
    if (o_.sigma > 0) tokens = portable_exp(log_median_ + o_.sigma * source_.normal(index));
    const double bounded = std::clamp<double>(tokens, o_.min.raw(), o_.max.raw());
    return token_count{static_cast<std::int32_t>(std::llround(bounded))};
  }

 private:
  const length_options& o_;
  double log_median_;
  random_stream source_;
};

/// Chooses system prompts by popularity.
class prefix_draw {
 public:
  explicit prefix_draw(const synth_options& o) : source_(o.seed, stream::prefix_choice) {
    double sum = 0;
    for (std::uint32_t rank = 1; rank <= o.prefixes; ++rank) {
      sum += portable_exp(-o.zipf * portable_log(rank));
      cumulative_.push_back(sum);
    }
  }

  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const {
    const double target = source_.uniform(index) * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, target);
    return static_cast<std::uint64_t>(found - cumulative_.begin());
  }

 private:
  random_stream source_;
  std::vector<double> cumulative_;
};

/// Writes sessions into a trace one after another. Block ids are numbers in order
/// of first use: system prompts first, then whatever is said.
class session_writer {
 public:
  explicit session_writer(const synth_options& o)
      : o_(o),
        prompt_(o.prompt, random_stream(o.seed, stream::prompts)),
        output_(o.output, random_stream(o.seed, stream::outputs)),
        prefix_(o),
        turn_counts_(o.seed, stream::turn_counts),
        thinks_(o.seed, stream::thinks),
        with_ids_(o.prefixes > 0 || o.turns_max > 1),
        next_id_(std::uint64_t{o.prefixes} * system_blocks()) {
    t_.format = "synthetic";
    t_.requests.reserve(o.requests);
    if (with_ids_) t_.prefix_block = o.prefix_block;
  }

  [[nodiscard]] bool full() const { return t_.requests.size() >= o_.requests; }

  void add_session(std::uint64_t session, micros start) {
    begin_context(session);
    const auto turns = o_.turns_min + turn_counts_.below(session, o_.turns_max - o_.turns_min + 1);
    for (std::uint64_t turn = 0; turn < turns && !full(); ++turn) {
      const std::uint64_t index = t_.requests.size();
      request r;
      r.output_tokens = output_(index);
      const std::int64_t prompt = context_tokens_ + prompt_(index).raw();
      const std::int64_t limit = o_.context_max.raw() > 0 ? o_.context_max.raw() : length_max;
      if (prompt + r.output_tokens.raw() > limit && turn > 0) return;
      require(prompt + r.output_tokens.raw() <= limit, "context max", static_cast<double>(limit),
              "room for the longest first turn: system prompt, prompt max and output max");
      r.prompt_tokens = token_count{static_cast<std::int32_t>(prompt)};
      place_in_time(r, session, turn, start);
      if (with_ids_) write_prefix(r);
      context_tokens_ = prompt + r.output_tokens.raw();
      t_.requests.push_back(r);
    }
  }

  [[nodiscard]] trace take() { return std::move(t_); }

 private:
  [[nodiscard]] std::uint64_t system_blocks() const {
    return static_cast<std::uint64_t>(o_.prefix_tokens.raw() / o_.prefix_block.raw());
  }

  void begin_context(std::uint64_t session) {
    known_.clear();
    context_tokens_ = 0;
    if (o_.prefixes == 0) return;
    context_tokens_ = o_.prefix_tokens.raw();
    const std::uint64_t first = prefix_(session) * system_blocks();
    for (std::uint64_t i = 0; i < system_blocks(); ++i) known_.push_back(first + i);
  }

  void place_in_time(request& r, std::uint64_t session, std::uint64_t turn, micros start) {
    const auto index = static_cast<std::uint32_t>(t_.requests.size());
    if (o_.turns_max > 1) {
      if (turn == 0) t_.names.push_back(std::to_string(session));
      r.session = static_cast<std::uint32_t>(t_.names.size() - 1);
    }
    if (turn == 0) {
      r.arrival = start;
    } else {
      r.after = index - 1;
      r.delay = micros{std::llround(thinks_.exponential(index) * o_.think_s * 1e6)};
    }
  }

  /// A block that the context filled keeps its id; the last, partial one is never shared.
  void write_prefix(request& r) {
    const auto blocks =
        static_cast<std::size_t>(blocks_for(r.prompt_tokens, o_.prefix_block).raw());
    const auto full_blocks =
        static_cast<std::size_t>(r.prompt_tokens.raw() / o_.prefix_block.raw());
    while (known_.size() < full_blocks) known_.push_back(next_id_++);
    require(t_.prefix_ids.size() + blocks < none, "prefix ids", 4294967295.0,
            "fewer: fewer requests, shorter prompts or a larger prefix block");
    make_room(blocks);
    r.prefix_begin = static_cast<std::uint32_t>(t_.prefix_ids.size());
    r.prefix_count = static_cast<std::uint32_t>(blocks);
    t_.prefix_ids.insert(t_.prefix_ids.end(), known_.begin(), known_.begin() + full_blocks);
    if (blocks > full_blocks) t_.prefix_ids.push_back(next_id_++);
  }

  /// Grows towards what the requests so far suggest for all: fewer copies than by doubling.
  void make_room(std::size_t blocks) {
    auto& ids = t_.prefix_ids;
    if (ids.size() + blocks <= ids.capacity()) return;
    const double share_done =
        static_cast<double>(t_.requests.size() + 1) / static_cast<double>(o_.requests);
    const double guess = static_cast<double>(ids.size() + blocks) * (1.02 / share_done - 1);
    const double bound = 8 * static_cast<double>(ids.size()) + 1e6;  // one long prompt says little
    ids.reserve(ids.size() + blocks + static_cast<std::size_t>(std::min(guess, bound)));
  }

  const synth_options& o_;
  trace t_;
  length_draw prompt_;
  length_draw output_;
  prefix_draw prefix_;
  random_stream turn_counts_;
  random_stream thinks_;
  bool with_ids_;
  std::uint64_t next_id_;
  std::vector<std::uint64_t> known_;  // ids of the context's full blocks
  std::int64_t context_tokens_ = 0;
};

}  // namespace

double lognormal_median(double mean, double sigma) {
  return mean * portable_exp(-sigma * sigma / 2);
}

trace synthesize(const synth_options& options) {
  check(options);
  arrival_clock clock(options);
  session_writer writer(options);
  for (std::uint64_t session = 0; !writer.full(); ++session) {
    writer.add_session(session, clock.next());
  }
  return writer.take();
}

}  // namespace octavo::traces
