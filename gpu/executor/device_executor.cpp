// The executor on devices: see device_executor.hpp.
#include "gpu/executor/device_executor.hpp"

#include <algorithm>
#include <bit>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "gpu/executor/host_threads.hpp"
#include "gpu/executor/make_communicator.hpp"
#include "gpu/executor/rehearsal.hpp"
#include "gpu/runtime/device.hpp"

namespace octavo::gpu {

struct device_executor::rank_state {
  stream on;
  device_weights weights;
  kv_pools pools;
  step_arrays arrays;
  std::unique_ptr<decoder> computes;
  /// Before anything was taken, and after the rehearsal.
  memory_info before, memory;
  /// By turn: behind all that a step queued.
  std::array<event, 2> done;
};

namespace {

/// More than a device can hold of any model but a toy; the host accounts for each of them.
constexpr std::int32_t blocks_max = 1 << 22;

const device_info& found(const std::vector<device_info>& all, int index) {
  const auto at = std::ranges::find(all, index, &device_info::index);
  if (at != all.end()) return *at;
  throw input_error("devices names device " + std::to_string(index) + "; there are " +
                    std::to_string(all.size()));
}

step_limits limits_of(const device_executor_options& o, int multiprocessors) {
  return {o.max_num_batched_tokens, o.max_num_seqs, o.max_model_len, multiprocessors};
}

}  // namespace

device_executor::device_executor(const model::checkpoint& source, model::tokenizer words,
                                 device_executor_options options)
    : options_(std::move(options)),
      config_(source.config()),
      generations_(std::move(words), model::engine_kv_groups(config_, kv_page_tokens),
                   options_.generation) {
  // Weights may have rows beyond the tokens that exist.
  vocabulary_ = static_cast<int>(
      std::min(config_.vocab_size, static_cast<std::int64_t>(generations_.words().vocab_size())));
  const auto all = devices();
  const device_info& first = found(all, options_.devices.at(0));
  for (const int device : options_.devices) static_cast<void>(found(all, device));
  // Pinned memory, too, is taken in the context of the current device.
  set_device(first.index);
  device_name_ = first.name;
  fp8_products_ = 10 * first.compute_major + first.compute_minor >= 89;
  const int ranks = static_cast<int>(options_.devices.size());
  model::check_tensor_parallel(config_, ranks);
  const attention_choice choice{options_.type, options_.kv_type, options_.batch_invariant};
  for (auto& plan : plans_) {
    plan = std::make_unique<step_plan>(config_, ranks, choice,
                                       limits_of(options_, first.multiprocessors));
  }
  if (ranks > 1) {
    const auto sum_bytes_max = static_cast<std::size_t>(options_.max_num_batched_tokens) *
                               static_cast<std::size_t>(config_.hidden_size) * sizeof(float);
    others_ = make_communicator(options_.devices, sum_bytes_max, options_.batch_invariant);
  }
  ranks_.resize(options_.devices.size());
  threads_ = std::make_unique<rank_threads>(options_.devices);
  // All of them before anything is copied.
  on_all_ranks([&](int) { reach_peers(); });
  on_all_ranks([&](int rank) { load_rank(source, rank); });
  take_memory();
}

device_executor::~device_executor() {
  // Streams and memory end on the threads that made them.
  if (threads_ == nullptr) return;
  threads_->run([this](int rank) {
    auto& state = ranks_[static_cast<std::size_t>(rank)];
    try {
      if (state != nullptr) state->on.synchronize();
    } catch (const device_error&) {
      // Whoever waited for a step was told.
    }
  });
  threads_->run([this](int rank) {
    if (rank == 0) sampler_.reset();
    ranks_[static_cast<std::size_t>(rank)].reset();
  });
}

void device_executor::on_all_ranks(const std::function<void(int)>& work) {
  threads_->run(work, [this] {
    if (others_ != nullptr) others_->abandon();
  });
}

void device_executor::reach_peers() const {
  if (others_ == nullptr || !others_->reads_peers()) return;
  const int device = current_device();
  for (const int other : options_.devices) {
    if (other != device) enable_peer_access(device, other);
  }
}

void device_executor::load_rank(const model::checkpoint& source, int rank) {
  const int ranks = threads_->size();
  stream on;
  const memory_info before = device_memory();
  device_weights weights =
      load_device_weights(source, {options_.type, fp8_products_}, ranks, rank, on,
                          run_on_host_threads, rank == 0 ? options_.progress : load_progress{});
  auto state = std::make_unique<rank_state>(rank_state{std::move(on),
                                                       std::move(weights),
                                                       kv_pools{config_, ranks, options_.kv_type},
                                                       step_arrays{*plans_[0]},
                                                       nullptr,
                                                       before,
                                                       {},
                                                       {}});
  ranks_[static_cast<std::size_t>(rank)] = std::move(state);
  make_decoder(rank);
  if (rank == 0) {
    sampler_ = std::make_unique<device_sampler>(options_.max_num_seqs, vocabulary_,
                                                options_.max_num_seqs, options_.max_model_len);
  }
}

void device_executor::make_decoder(int rank) {
  rank_state& state = *ranks_[static_cast<std::size_t>(rank)];
  decoder_options o;
  o.type = options_.type;
  o.kv_type = options_.kv_type;
  o.ranks = threads_->size();
  o.rank = rank;
  o.limits = limits_of(options_, plans_[0]->multiprocessors());
  o.batch_invariant = options_.batch_invariant;
  o.vocabulary = vocabulary_;
  o.others = others_.get();
  state.computes = nullptr;
  state.computes = std::make_unique<decoder>(state.weights, state.pools, *plans_[0], o, state.on);
  state.on.synchronize();
}

void device_executor::take_memory() {
  on_all_ranks([&](int rank) {
    rank_state& state = *ranks_[static_cast<std::size_t>(rank)];
    state.pools.allocate(rehearsal::blocks);
    state.pools.fill_zero(state.on);
    state.on.synchronize();
  });
  if (others_ != nullptr) load_kernels();
  num_blocks_ = options_.num_blocks;
  if (num_blocks_ == 0) {
    rehearse(true);
    measure_memory();
    num_blocks_ = blocks_max;
    for (int rank = 0; rank < threads_->size(); ++rank) {
      num_blocks_ = std::min(num_blocks_, blocks_left(rank));
    }
  }
  on_all_ranks(
      [&](int rank) { ranks_[static_cast<std::size_t>(rank)]->pools.allocate(num_blocks_); });
}

void device_executor::load_kernels() {
  others_->let_pass(true);
  rehearse(false);
  others_->let_pass(false);
}

// Runs what serving can run, on as few KV blocks as will do. A graph is captured when its step
// comes again. Each rank waits before it measures, so that nothing of any is missing then.
void device_executor::rehearse(bool with_graphs) {
  const rehearsal steps{config_, limits_of(options_, plans_[0]->multiprocessors()),
                        options_.rehearsal_tokens_max};
  flight of;
  for (const model::decoder_batch& batch : steps.batches()) {
    sources_.assign(batch.tokens.size(), -1);
    lay_out(of, batch);
    of.as_graph = of.as_graph && with_graphs;
    for (int times = of.as_graph ? 2 : 1; times > 0; --times) {
      on_all_ranks([&](int rank) { rehearse_on_rank(of, rank); });
    }
  }
}

void device_executor::rehearse_on_rank(const flight& of, int rank) {
  rank_state& state = *ranks_[static_cast<std::size_t>(rank)];
  queue_step(of, rank);
  if (rank == 0) {
    sampler_->rehearse(state.on, state.computes->logits(), state.computes->chosen(),
                       plans_[of.turn]->logit_rows());
  }
  state.on.synchronize();
}

// The graphs that were captured know where the small pools were. They go with their
// decoder, which leaves their memory to those that will be captured of the real pools:
// capturing all of them again at once would only make the start longer.
void device_executor::measure_memory() {
  on_all_ranks([&](int rank) { ranks_[static_cast<std::size_t>(rank)]->pools.release(); });
  on_all_ranks([&](int rank) { ranks_[static_cast<std::size_t>(rank)]->memory = device_memory(); });
  on_all_ranks([&](int rank) { make_decoder(rank); });
}

// Memory that others use counts as used, as in vLLM: the share is of the whole device.
std::int32_t device_executor::blocks_left(int rank) const {
  const rank_state& state = *ranks_[static_cast<std::size_t>(rank)];
  const int device = options_.devices[static_cast<std::size_t>(rank)];
  const auto total = static_cast<double>(state.memory.total_bytes);
  const double used = total - static_cast<double>(state.memory.free_bytes);
  const auto block =
      static_cast<double>(kv_pools::block_bytes(config_, threads_->size(), options_.kv_type));
  // Emulated ranks may share a device.
  const auto sharers = static_cast<double>(std::ranges::count(options_.devices, device));
  const double left = (options_.gpu_memory_utilization * total - used) / sharers / block;
  if (left >= 1) return static_cast<std::int32_t>(std::min(left, 1.0 * blocks_max));
  const double others = total - static_cast<double>(state.before.free_bytes);
  std::ostringstream text;
  const auto gib = [](double bytes) { return bytes / (1 << 30); };
  text << std::setprecision(3) << "--gpu-memory-utilization: " << options_.gpu_memory_utilization
       << " of the " << gib(total) << " GiB of device " << device << " are "
       << gib(options_.gpu_memory_utilization * total) << " GiB; " << gib(others)
       << " GiB were in use before, weights and the largest steps take " << gib(used - others)
       << " GiB: no KV block of " << block / (1 << 20) << " MiB is left. Raise it, lower "
       << "--max-num-batched-tokens, --max-num-seqs or --max-model-len, share the model by "
       << "--tensor-parallel-size, or stop what else uses the device";
  throw infeasible_error(text.str());
}

executor_capabilities device_executor::capabilities() const {
  executor_capabilities can;
  can.kv_groups = model::engine_kv_groups(config_, kv_page_tokens);
  can.num_blocks = block_count{num_blocks_};
  can.block_bytes = kv_pools::block_bytes(config_, threads_->size(), options_.kv_type);
  can.max_num_batched_tokens = token_count{options_.max_num_batched_tokens};
  can.device_name = device_name_;
  return can;
}

void device_executor::submit(step_ptr plan) {
  flight& of = flights_.emplace_back();
  of.plan = std::move(plan);
  of.turn = std::exchange(next_turn_, 1 - next_turn_);
  start_ready();
}

// Starts what can start. Host memory is there for two steps, and the second needs the
// tokens of the first: of the device, or once the first is finished.
void device_executor::start_ready() {
  for (std::size_t i = 0; i < std::min<std::size_t>(flights_.size(), 2); ++i) {
    flight& of = flights_[i];
    if (of.started) continue;
    const flight* before = i == 0 ? nullptr : &flights_[i - 1];
    if (before != nullptr && !before->wanted.empty() && !before->chosen_on_device) return;
    start(of, before);
  }
}

void device_executor::start(flight& of, const flight* before) {
  generations_.follow(*of.plan);
  if (!of.plan->work.empty()) prepare(of, before);
  generations_.expect(*of.plan, of.wanted);
  of.started = true;
  on_all_ranks([&](int rank) { queue_on_rank(of, rank); });
}

void device_executor::prepare(flight& of, const flight* before) {
  const model::decoder_batch batch = model::batch_of(*of.plan, generations_.slots());
  find_sources(batch, before);
  of.follows = std::ranges::any_of(sources_, [](std::int32_t source) { return source >= 0; });
  lay_out(of, batch);
}

// Steps of decodes alone run as graphs: of each power of two of rows there is one. All ranks
// run the step in the same way.
void device_executor::lay_out(flight& of, const model::decoder_batch& batch) {
  const auto rows = static_cast<int>(batch.tokens.size());
  const auto padded = static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows)));
  const bool decodes = batch.tokens.size() == batch.sequences.size() &&
                       batch.tokens.size() == batch.logit_rows.size();
  const int most = std::min(options_.max_num_batched_tokens, options_.max_num_seqs);
  const bool capturable = others_ == nullptr || others_->capturable();
  of.as_graph = decodes && !options_.enforce_eager && capturable && padded <= most;
  step_plan& plan = *plans_[of.turn];
  of.as_graph ? plan.prepare_padded(batch, padded, sources_) : plan.prepare(batch, sources_);
}

// Both steps list sequences in the scheduler's order, so the search goes on where it was.
void device_executor::find_sources(const model::decoder_batch& batch, const flight* before) {
  sources_.assign(batch.tokens.size(), -1);
  std::size_t at = 0;
  for (const model::batch_sequence& sequence : batch.sequences) {
    const std::size_t last = sequence.first_row + sequence.rows - 1;
    if (batch.tokens[last] != model::unknown_token) continue;
    const std::size_t count = before == nullptr ? 0 : before->wanted.size();
    std::size_t looked = 0;
    const auto is_it = [&](const model::wanted_token& want) {
      return want.sequence.get() == sequence.where && want.sample == 0;
    };
    while (looked < count && !is_it(before->wanted[at % count])) ++at, ++looked;
    if (looked == count) throw std::logic_error("a row begins with a token that nobody chooses");
    sources_[last] = static_cast<std::int32_t>(at++ % count);
  }
}

void device_executor::queue_on_rank(flight& of, int rank) {
  rank_state& state = *ranks_[static_cast<std::size_t>(rank)];
  rank_state& first = *ranks_[0];
  for (const block_copy& copy : of.plan->copies) state.pools.copy(state.on, copy.from, copy.to);
  if (!of.plan->work.empty()) {
    if (rank > 0 && of.follows) {
      state.on.wait(first.done[1 - of.turn]);
      copy_on_device(state.on, state.computes->chosen(), first.computes->chosen(),
                     static_cast<std::size_t>(options_.max_num_seqs) * sizeof(std::int32_t));
    }
    queue_step(of, rank);
    if (rank == 0 && !of.wanted.empty() && !options_.sample_on_host) {
      of.chosen_on_device =
          sampler_->queue(state.on, *of.plan, generations_, of.wanted, state.computes->logits(),
                          state.computes->chosen(), of.turn);
    }
  }
  state.done[of.turn].record(state.on);
}

void device_executor::queue_step(const flight& of, int rank) {
  rank_state& state = *ranks_[static_cast<std::size_t>(rank)];
  const step_plan& plan = *plans_[of.turn];
  state.arrays.upload(plan, state.on);
  of.as_graph ? state.computes->forward_as_graph(state.on, plan, state.arrays)
              : state.computes->forward(state.on, plan, state.arrays);
}

// While a second step is queued already, no other comes. A rank's kernels may wait for
// another's, whose work the emulator runs only on the thread that waits for it.
bool device_executor::wait_for(micros longest) {
#if defined(OCTAVO_NATIVE_CUDA)
  const bool may_look = true;
#else
  const bool may_look = threads_->size() == 1;
#endif
  if (!options_.run_ahead || flights_.size() != 1 || !may_look) return true;
  event& done = ranks_[0]->done[flights_.front().turn];
  // A look takes about two microseconds.
  for (auto looks = longest.raw() / 2; looks > 0; --looks) {
    if (done.ready()) return true;
    std::this_thread::yield();
  }
  return false;
}

step_ptr device_executor::await() {
  finish(flights_.front());
  step_ptr plan = std::move(flights_.front().plan);
  flights_.pop_front();
  start_ready();
  return plan;
}

void device_executor::finish(flight& of) {
  on_all_ranks([&](int rank) {
    ranks_[static_cast<std::size_t>(rank)]->done[of.turn].synchronize();
    if (rank == 0 && !of.chosen_on_device) choose_on_host(of);
  });
  if (of.wanted.empty()) return;
  if (of.chosen_on_device) sampler_->read(of.wanted, of.turn, chosen_);
  generations_.take(*of.plan, of.wanted, chosen_);
}

void device_executor::choose_on_host(const flight& of) {
  chosen_.clear();
  if (of.wanted.empty()) return;
  rank_state& first = *ranks_[0];
  const auto width = static_cast<std::size_t>(vocabulary_);
  std::vector<float> logits(static_cast<std::size_t>(plans_[of.turn]->logit_rows()) * width);
  copy_to_host(first.on, logits.data(), first.computes->logits(), logits.size() * sizeof(float));
  first.on.synchronize();
  std::vector<float> row(width);
  for (const model::wanted_token& want : of.wanted) {
    std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(want.row * width), width, row.begin());
    chosen_.push_back(host_sampler_.sample(row, model::generations::sampling(want),
                                           generations_.state(*of.plan, want)));
  }
}

}  // namespace octavo::gpu
