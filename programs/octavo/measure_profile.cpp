// Measuring an executor: see measure_profile.hpp.
#include "programs/octavo/measure_profile.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"

namespace octavo {
namespace {

constexpr std::int32_t block_size = 16;

std::int32_t blocks_of_sequence(const std::vector<kv_group>& groups, std::int32_t tokens) {
  std::int32_t blocks = 0;
  for (const kv_group& g : groups) {
    blocks += g.pool_blocks * ((tokens + block_size - 1) / block_size);
  }
  return blocks;
}

/// Doubling from 1, and the points between that kernels' row tiles make uneven.
std::vector<double> token_axis(std::int32_t most) {
  std::vector<double> axis;
  for (const int n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384}) {
    if (n < most) axis.push_back(n);
  }
  axis.push_back(most);
  return axis;
}

std::vector<double> doubling_axis(std::int32_t least, std::int32_t most) {
  std::vector<double> axis;
  for (std::int32_t n = least; n < most; n *= 2) axis.push_back(n);
  axis.push_back(most);
  return axis;
}

// Sends an executor steps of chosen shapes.
class laboratory {
 public:
  laboratory(executor& device, const std::vector<kv_group>& groups, const measure_options& options,
             const std::function<double()>& seconds)
      : device_(device), groups_(groups), options_(options), seconds_(seconds) {
    sampling_parameters greedy;
    greedy.temperature = 0;
    greedy.ignore_eos = true;
    greedy_ = std::make_shared<sampling_parameters>(greedy);
  }

  // Computes the longest context once, in the first slot, and copies it to the
  // others: memory that was never written would be read faster than it is.
  void fill_memory() {
    open_slots(options_.sequences_max);
    for (std::int32_t at = 0; at < options_.context_max;) {
      const std::int32_t count = std::min(options_.tokens_max, options_.context_max - at);
      run({work_of(0, at, count, 0)});
      at += count;
    }
    const std::int32_t each = blocks_of_sequence(groups_, options_.context_max);
    for (std::int32_t slot = 1; slot < options_.sequences_max; ++slot) {
      auto plan = std::make_shared<step>();
      for (std::int32_t b = 0; b < each; ++b) {
        plan->copies.push_back({block(b), block(slot * each + b)});
      }
      take(std::move(plan));
    }
  }

  // Seconds of a step in which `sequences` decode behind `context` tokens each.
  double decode_seconds(std::int32_t sequences, std::int32_t context, bool sampled) {
    std::vector<sequence_work> work;
    for (std::int32_t i = 0; i < sequences; ++i) {
      work.push_back(work_of(static_cast<std::uint32_t>(i), context - 1, 1, sampled ? 1 : 0));
    }
    return median_seconds(work);
  }

  double prefill_seconds(std::int32_t tokens, std::int32_t context) {
    return median_seconds({work_of(0, context, tokens, 0)});
  }

  // As many slots as `count`, of one block each.
  void use_short_slots(std::int32_t count) {
    release_slots();
    length_ = block_size;
    open_slots(count);
  }

 private:
  static block_id block(std::int32_t index) { return block_id{static_cast<std::uint32_t>(index)}; }

  static sequence_work work_of(std::uint32_t slot, std::int32_t first, std::int32_t count,
                               std::uint16_t samples) {
    sequence_work w;
    w.slot = slot;
    w.request = request_id{slot + 1};
    w.first_position = token_count{first};
    w.count = token_count{count};
    w.samples = samples;
    return w;
  }

  void open_slots(std::int32_t count) {
    auto plan = std::make_shared<step>();
    const std::int32_t length = length_ > 0 ? length_ : options_.context_max;
    std::int32_t next_block = 0;
    for (std::int32_t i = 0; i < count; ++i) {
      admission_command a;
      a.slot = static_cast<std::uint32_t>(i);
      a.request = request_id{static_cast<std::uint64_t>(i) + 1};
      a.query_tokens = a.prompt_tokens = token_count{length};
      a.tokens_begin = static_cast<std::uint32_t>(plan->admitted_tokens.size());
      a.end_tokens = token_count::max();
      a.sampling = greedy_;
      for (std::int32_t t = 0; t < length; ++t) plan->admitted_tokens.push_back(1 + t % 200);
      plan->admissions.push_back(a);
      for (std::uint32_t g = 0; g < groups_.size(); ++g) {
        const std::int32_t blocks =
            groups_[g].pool_blocks * ((length + block_size - 1) / block_size);
        plan->table_changes.push_back({a.slot, g, 0,
                                       static_cast<std::uint32_t>(plan->new_blocks.size()),
                                       static_cast<std::uint32_t>(blocks)});
        for (std::int32_t b = 0; b < blocks; ++b) plan->new_blocks.push_back(block(next_block++));
      }
    }
    slots_ = count;
    take(std::move(plan));
  }

  void release_slots() {
    auto plan = std::make_shared<step>();
    for (std::int32_t i = 0; i < slots_; ++i) {
      plan->releases.push_back({static_cast<std::uint32_t>(i)});
    }
    take(std::move(plan));
  }

  void take(step_ptr plan) {
    device_.submit(std::move(plan));
    if (device_.await()->result.status != step_status::ok) {
      throw infeasible_error("a step failed while it was measured");
    }
  }

  double run(const std::vector<sequence_work>& work) {
    auto plan = std::make_shared<step>();
    plan->work = work;
    const double start = seconds_();
    take(std::move(plan));
    return seconds_() - start;
  }

  double median_seconds(const std::vector<sequence_work>& work) {
    run(work);
    std::vector<double> times;
    for (std::int32_t i = 0; i < options_.repeats; ++i) times.push_back(run(work));
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

  executor& device_;
  const std::vector<kv_group>& groups_;
  const measure_options& options_;
  const std::function<double()>& seconds_;
  std::shared_ptr<const sampling_parameters> greedy_;
  std::int32_t length_ = 0;
  std::int32_t slots_ = 0;
};

sim::grid<1> column(const std::vector<double>& axis, std::vector<double> us) {
  return {{sim::grid_axis{axis}}, std::move(us)};
}

// A difference of two measurements in microseconds a layer; noise may make it
// negative, which no time is.
double added_us(double with_s, double without_us, std::int64_t layers) {
  return std::max(0.0, (with_s * 1e6 - without_us) / static_cast<double>(layers));
}

}  // namespace

std::int32_t blocks_to_measure(const std::vector<kv_group>& groups,
                               const measure_options& options) {
  return std::max(options.sequences_max * blocks_of_sequence(groups, options.context_max),
                  options.tokens_max * blocks_of_sequence(groups, 1));
}

sim::profile measure_profile(executor& device, const std::vector<kv_group>& groups,
                             std::int64_t layers, const measure_options& options,
                             const std::function<double()>& seconds,
                             const std::function<void(double)>& progress) {
  laboratory lab{device, groups, options, seconds};
  const auto tokens = token_axis(options.tokens_max);
  const auto sequences = doubling_axis(1, options.sequences_max);
  const auto contexts = doubling_axis(64, options.context_max);
  const auto chunks = doubling_axis(16, options.tokens_max);
  std::vector<double> behind{0};
  for (const double c : contexts) {
    if (c + options.tokens_max <= options.context_max) behind.push_back(c);
  }
  lab.fill_memory();
  progress(0.1);
  std::vector<double> decode_s;
  for (const double n : sequences) {
    for (const double c : contexts) {
      decode_s.push_back(
          lab.decode_seconds(static_cast<std::int32_t>(n), static_cast<std::int32_t>(c), false));
    }
    progress(0.1 + 0.4 * n / options.sequences_max);
  }
  std::vector<double> prefill_s;
  for (const double t : chunks) {
    for (const double c : behind) {
      prefill_s.push_back(
          lab.prefill_seconds(static_cast<std::int32_t>(t), static_cast<std::int32_t>(c)));
    }
    progress(0.5 + 0.3 * t / options.tokens_max);
  }
  lab.use_short_slots(options.tokens_max);
  std::vector<double> dense_us;
  for (const double n : tokens) {
    dense_us.push_back(lab.decode_seconds(static_cast<std::int32_t>(n), 1, false) * 1e6);
  }
  const sim::grid<1> dense = column(tokens, dense_us);
  std::vector<double> sampled_us;
  for (const double n : sequences) {
    const double all = lab.decode_seconds(static_cast<std::int32_t>(n), 1, true);
    sampled_us.push_back(added_us(all, dense.at({n}), 1));
  }
  progress(1);
  sim::profile p;
  p.layers = layers;
  p.dense.push_back({"decoder", 1, dense});
  p.per_sequence.push_back({"head_and_sampling", 1, column(sequences, sampled_us)});
  for (std::size_t i = 0; i < decode_s.size(); ++i) {
    decode_s[i] = added_us(decode_s[i], dense.at({sequences[i / contexts.size()]}), layers);
  }
  for (std::size_t i = 0; i < prefill_s.size(); ++i) {
    prefill_s[i] = added_us(prefill_s[i], dense.at({chunks[i / behind.size()]}), layers);
  }
  p.attention_decode = {{sim::grid_axis{sequences}, sim::grid_axis{contexts}}, std::move(decode_s)};
  p.attention_prefill = {{sim::grid_axis{chunks}, sim::grid_axis{behind}}, std::move(prefill_s)};
  return p;
}

}  // namespace octavo
