// The executor that computes on devices: it follows the plans, runs the decoder of each
// rank of a tensor-parallel group, and samples. With several devices each has a host
// thread of its own.
//
// A step starts when it is submitted. One that was planned ahead is queued behind the
// step that runs, which may still have to choose the tokens it begins with: they go from
// the sampler to the next step on the device, so that it never waits for the host.
//
// The same class runs on hardware and on the emulator: what is below gpu/runtime differs.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/executor.hpp"
#include "gpu/executor/communicator.hpp"
#include "gpu/executor/decoder.hpp"
#include "gpu/executor/device_sampler.hpp"
#include "gpu/executor/rank_threads.hpp"
#include "gpu/executor/step_plan.hpp"
#include "gpu/types.hpp"
#include "model/container/checkpoint.hpp"
#include "model/generation/generations.hpp"

namespace octavo::gpu {

struct device_executor_options {
  /// The ranks' devices.
  std::vector<int> devices = {0};
  /// float16 or bfloat16: of activations and of weights that are not quantized.
  dtype type = dtype::float16;
  /// `type` or float8_e4m3.
  dtype kv_type = dtype::float16;
  /// KV blocks of each rank; 0: what gpu_memory_utilization leaves, measured after steps
  /// of the largest kinds have run.
  std::int32_t num_blocks = 0;
  /// Share of a device's memory that may be in use, by whatever uses it, when KV has taken
  /// the rest.
  double gpu_memory_utilization = 0.92;
  /// Most rows of those steps, and tokens of their sequences; 0: as many as steps may have.
  /// For emulated devices, which have no kernels to load and take minutes over thousands.
  std::int32_t rehearsal_tokens_max = 0;
  std::int32_t max_num_batched_tokens = 0;
  std::int32_t max_num_seqs = 0;
  std::int32_t max_model_len = 0;
  /// Bits of a sequence do not depend on its company, chunks or hits; slower. Ranks' sums
  /// are then taken in rank order whatever their size, never by NCCL.
  bool batch_invariant = false;
  /// Launch kernels one by one, never as graphs.
  bool enforce_eager = false;
  /// Steps may be submitted while one runs.
  bool run_ahead = false;
  /// Choose tokens on the host, by the CPU's sampler: all logits cross the bus.
  bool sample_on_host = false;
  model::generation_options generation;
  load_progress progress;
};

class device_executor final : public executor {
 public:
  /// Loads the weights and takes the memory for KV. Throws input_error and
  /// infeasible_error for what the model or the options do not allow, device_error for
  /// what the devices refuse.
  device_executor(const model::checkpoint& source, model::tokenizer words,
                  device_executor_options options);
  ~device_executor() override;

  [[nodiscard]] executor_capabilities capabilities() const override;
  void submit(step_ptr plan) override;
  bool wait_for(micros longest) override;
  /// Throws device_error where a device fails.
  step_ptr await() override;

 private:
  /// What lives on one device.
  struct rank_state;

  /// A submitted step.
  struct flight {
    step_ptr plan;
    std::vector<model::wanted_token> wanted;
    std::size_t turn = 0;  ///< its host memory: steps take turns
    bool started = false;
    bool as_graph = false;          ///< padded to the shape of a graph
    bool chosen_on_device = false;  ///< its tokens need no host
    bool follows = false;           ///< begins with tokens of the step before
  };

  void reach_peers() const;
  void load_rank(const model::checkpoint& source, int rank);
  void make_decoder(int rank);
  void take_memory();
  void load_kernels();
  void rehearse(bool with_graphs);
  void rehearse_on_rank(const flight& of, int rank);
  void measure_memory();
  [[nodiscard]] std::int32_t blocks_left(int rank) const;
  void start_ready();
  void start(flight& of, const flight* before);
  void prepare(flight& of, const flight* before);
  void find_sources(const model::decoder_batch& batch, const flight* before);
  void lay_out(flight& of, const model::decoder_batch& batch);
  void queue_on_rank(flight& of, int rank);
  void queue_step(const flight& of, int rank);
  void finish(flight& of);
  void choose_on_host(const flight& of);
  void on_all_ranks(const std::function<void(int)>& work);

  device_executor_options options_;
  model::model_config config_;
  model::generations generations_;
  /// By turn.
  std::array<std::unique_ptr<step_plan>, 2> plans_;
  std::unique_ptr<communicator> others_;
  std::vector<std::unique_ptr<rank_state>> ranks_;
  std::unique_ptr<rank_threads> threads_;
  /// On rank 0.
  std::unique_ptr<device_sampler> sampler_;
  std::int32_t num_blocks_ = 0;
  int vocabulary_ = 0;
  bool fp8_products_ = false;  ///< the devices multiply FP8
  std::string device_name_;
  /// Of the rows of the step in hand: which of the last step's tokens they begin with.
  std::vector<std::int32_t> sources_;
  std::vector<model::sampled_token> chosen_;
  model::sampler host_sampler_;
  std::deque<flight> flights_;
  std::size_t next_turn_ = 0;
};

}  // namespace octavo::gpu
