// The executor on devices: see device_executor.hpp.
#include "gpu/executor/device_executor.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "gpu/executor/host_threads.hpp"
#include "gpu/executor/make_communicator.hpp"
#include "gpu/runtime/device.hpp"

namespace octavo::gpu {

struct device_executor::rank_state {
  stream on;
  device_weights weights;
  kv_pools pools;
  step_arrays arrays;
  std::unique_ptr<decoder> computes;
  memory_info memory;
};

namespace {

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
  device_name_ = first.name;
  fp8_products_ = 10 * first.compute_major + first.compute_minor >= 89;
  const int ranks = static_cast<int>(options_.devices.size());
  model::check_tensor_parallel(config_, ranks);
  const attention_choice choice{options_.type, options_.kv_type, options_.batch_invariant};
  plan_ = std::make_unique<step_plan>(config_, ranks, choice,
                                      limits_of(options_, first.multiprocessors));
  if (ranks > 1) others_ = make_communicator(options_.devices, options_.batch_invariant);
  ranks_.resize(options_.devices.size());
  threads_ = std::make_unique<rank_threads>(options_.devices);
  on_all_ranks([&](int rank) { load_rank(source, rank); });
  take_memory();
}

device_executor::~device_executor() {
  // Streams and memory end on the threads that made them.
  if (threads_ != nullptr) {
    threads_->run([this](int rank) {
      if (rank == 0) sampler_.reset();
      ranks_[static_cast<std::size_t>(rank)].reset();
    });
  }
}

void device_executor::on_all_ranks(const std::function<void(int)>& work) {
  threads_->run(work, [this] {
    if (others_ != nullptr) others_->abandon();
  });
}

void device_executor::load_rank(const model::checkpoint& source, int rank) {
  const int ranks = threads_->size();
  for (const int other : options_.devices) {
    if (others_ == nullptr || !others_->reads_peers()) break;
    if (other != current_device()) enable_peer_access(current_device(), other);
  }
  stream on;
  device_weights weights =
      load_device_weights(source, {options_.type, fp8_products_}, ranks, rank, on,
                          run_on_host_threads, rank == 0 ? options_.progress : load_progress{});
  auto state = std::make_unique<rank_state>(rank_state{std::move(on),
                                                       std::move(weights),
                                                       kv_pools{config_, ranks, options_.kv_type},
                                                       step_arrays{*plan_},
                                                       nullptr,
                                                       {}});
  decoder_options o;
  o.type = options_.type;
  o.kv_type = options_.kv_type;
  o.ranks = ranks;
  o.rank = rank;
  o.limits = limits_of(options_, plan_->multiprocessors());
  o.batch_invariant = options_.batch_invariant;
  o.vocabulary = vocabulary_;
  o.others = others_.get();
  state->computes = std::make_unique<decoder>(state->weights, state->pools, *plan_, o, state->on);
  if (rank == 0) {
    sampler_ =
        std::make_unique<device_sampler>(options_.max_num_seqs, vocabulary_, options_.max_num_seqs);
  }
  state->on.synchronize();
  state->memory = device_memory();
  ranks_[static_cast<std::size_t>(rank)] = std::move(state);
}

// The blocks that fit beside weights and scratch on the fullest device.
void device_executor::take_memory() {
  num_blocks_ = options_.num_blocks;
  const std::int64_t block_bytes =
      kv_pools::block_bytes(config_, threads_->size(), options_.kv_type);
  if (num_blocks_ == 0) {
    std::int64_t fewest = INT32_MAX;
    for (const auto& rank : ranks_) {
      const auto total = static_cast<double>(rank->memory.total_bytes);
      const auto used = total - static_cast<double>(rank->memory.free_bytes);
      const auto left = static_cast<std::int64_t>(options_.gpu_memory_utilization * total - used);
      fewest = std::min(fewest, left / block_bytes);
    }
    if (fewest < 1) {
      throw infeasible_error("gpu_memory_utilization of " +
                             std::to_string(options_.gpu_memory_utilization) +
                             " leaves no room for KV beside weights and scratch");
    }
    num_blocks_ = static_cast<std::int32_t>(fewest);
  }
  on_all_ranks(
      [&](int rank) { ranks_[static_cast<std::size_t>(rank)]->pools.allocate(num_blocks_); });
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

step_ptr device_executor::await() {
  step_ptr plan = std::move(pending_.front());
  pending_.erase(pending_.begin());
  generations_.follow(*plan);
  if (!plan->work.empty()) prepare(*plan);
  model::generations::list_wanted(*plan, wanted_);
  on_all_ranks([&](int rank) { run_rank(*plan, rank); });
  if (!plan->work.empty()) generations_.take(*plan, chosen_);
  return plan;
}

// Steps of decodes alone run as graphs: of each power of two of rows there is one.
void device_executor::prepare(const step& plan) {
  const model::decoder_batch batch = model::batch_of(plan, generations_.slots());
  const auto rows = static_cast<int>(batch.tokens.size());
  const auto padded = static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows)));
  const bool decodes = batch.tokens.size() == batch.sequences.size() &&
                       batch.tokens.size() == batch.logit_rows.size();
  const int most = std::min(options_.max_num_batched_tokens, options_.max_num_seqs);
  as_graph_ = decodes && !options_.enforce_eager && threads_->size() == 1 && padded <= most;
  as_graph_ ? plan_->prepare_padded(batch, padded) : plan_->prepare(batch);
}

void device_executor::run_rank(const step& plan, int rank) {
  rank_state& state = *ranks_[static_cast<std::size_t>(rank)];
  for (const block_copy& copy : plan.copies) state.pools.copy(state.on, copy.from, copy.to);
  if (!plan.work.empty()) {
    state.arrays.upload(*plan_, state.on);
    as_graph_ ? state.computes->forward_as_graph(state.on, *plan_, state.arrays)
              : state.computes->forward(state.on, *plan_, state.arrays);
    if (rank == 0) choose_tokens(plan);
  }
  state.on.synchronize();
}

void device_executor::choose_tokens(const step& plan) {
  chosen_.clear();
  if (wanted_.empty()) return;
  rank_state& first = *ranks_[0];
  const bool chosen =
      !options_.sample_on_host &&
      sampler_->choose(first.on, plan, generations_, wanted_, first.computes->logits(), chosen_);
  if (!chosen) choose_on_host(plan);
}

void device_executor::choose_on_host(const step& plan) {
  rank_state& first = *ranks_[0];
  const auto width = static_cast<std::size_t>(vocabulary_);
  std::vector<float> logits(static_cast<std::size_t>(plan_->logit_rows()) * width);
  copy_to_host(first.on, logits.data(), first.computes->logits(), logits.size() * sizeof(float));
  first.on.synchronize();
  std::vector<float> row(width);
  for (const model::wanted_token& want : wanted_) {
    std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(want.row * width), width, row.begin());
    chosen_.push_back(host_sampler_.sample(row, generations_.sampling(plan, want),
                                           generations_.state(plan, want)));
  }
}

}  // namespace octavo::gpu
