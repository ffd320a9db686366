// Checks parameters of sampling.hpp, divides the workspace and launches the kernels.
#include "gpu/kernels/sampling/sampling.hpp"

#include "gpu/kernels/common/launching.hpp"
#include "gpu/kernels/sampling/choose.cuh"
#include "gpu/kernels/sampling/survey.cuh"
#include "gpu/kernels/sampling/weigh.cuh"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* kernel = "sampling";
// Rows are counted by grid.y.
constexpr int rows_max = 65535;

int chunks_of(int vocabulary) {
  return (vocabulary + chunk_tokens - 1) / chunk_tokens;
}

/// Hands out parts of the workspace; with a null workspace it only adds up.
class divider {
 public:
  explicit divider(void* workspace) : base_(static_cast<unsigned char*>(workspace)) {}

  template <class T>
  T* take(std::size_t n) {
    const std::size_t at = bytes_;
    bytes_ += (n * sizeof(T) + 15) / 16 * 16;
    return base_ != nullptr ? reinterpret_cast<T*>(base_ + at) : nullptr;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  unsigned char* base_;
  std::size_t bytes_ = 0;
};

sampling_workspace divide(divider& parts, int rows, int vocabulary, int top_max) {
  const auto n = static_cast<std::size_t>(rows);
  const auto chunks = static_cast<std::size_t>(chunks_of(vocabulary));
  sampling_workspace work{};
  work.states = parts.take<row_state>(n);
  work.summaries = parts.take<chunk_summary>(n * chunks);
  work.bin_masses = parts.take<mass_t>(n * bins);
  work.collected = parts.take<token_place>(n * collected_max);
  work.tops = parts.take<token_place>(n * chunks * static_cast<std::size_t>(top_max));
  work.bin_counts = parts.take<unsigned>(n * bins);
  return work;
}

void check_sizes(int rows, int vocabulary, int top_max) {
  require_range(rows, 0, rows_max, kernel, "rows");
  require_range(vocabulary, 1, sampling_vocabulary_max, kernel, "vocabulary");
  require_range(top_max, 0, sampling_top_max, kernel, "top_max");
}

void check(const sampling_params& p) {
  check_sizes(p.rows, p.vocabulary, p.top_max);
  require_pointer(p.logits, kernel, "logits");
  require_pointer(p.how, kernel, "how");
  require_pointer(p.chosen, kernel, "chosen");
  require_pointer(p.logprobs, kernel, "logprobs");
  if (p.top_max > 0) {
    require_pointer(p.top_tokens, kernel, "top_tokens");
    require_pointer(p.top_logprobs, kernel, "top_logprobs");
  }
  require_pointer(p.workspace, kernel, "workspace");
  require_field(aligned_to(16, {p.workspace}), kernel, "workspace", "not aligned",
                "multiples of 16");
  const auto needed = sampling_workspace_bytes(p.rows, p.vocabulary, p.top_max);
  require_field(p.workspace_bytes >= needed, kernel, "workspace_bytes",
                std::to_string(p.workspace_bytes), (std::to_string(needed) + " and more").c_str());
}

template <class Memory>
launch_shape shape_of(dim3 grid, const char* name) {
  launch_shape shape{grid, dim3(sampling_threads), sizeof(Memory)};
  shape.name = name;
  return shape;
}

__global__ void __launch_bounds__(sampling_threads) clear_words(unsigned* words, int count) {
  const int i = static_cast<int>(blockIdx.x) * sampling_threads + threadIdx.x;
  if (i < count) store_global(words + i, 0U);
}

__global__ void __launch_bounds__(sampling_threads)
    count_words(unsigned* words, int vocabulary, const int* tokens, int count, bool prompt) {
  const int i = static_cast<int>(blockIdx.x) * sampling_threads + threadIdx.x;
  if (i >= count) return;
  const int token = load_global(tokens + i);
  if (token < 0 || token >= vocabulary) return;
  if (prompt) {
    atomicOr(words + token, history_prompt_bit);
  } else {
    atomicAdd(words + token, 1U);
  }
}

launch_shape shape_for(int count, const char* name) {
  const int blocks = (count + sampling_threads - 1) / sampling_threads;
  launch_shape shape{dim3(static_cast<unsigned>(blocks)), dim3(sampling_threads)};
  shape.name = name;
  return shape;
}

unsigned* words_of(unsigned* history, int vocabulary, int slot) {
  require_pointer(history, kernel, "history");
  require_range(vocabulary, 1, sampling_vocabulary_max, kernel, "vocabulary");
  require_range(slot, 0, 0x7fffffff, kernel, "slot");
  return history + static_cast<std::size_t>(slot) * static_cast<std::size_t>(vocabulary);
}

}  // namespace

std::size_t sampling_workspace_bytes(int rows, int vocabulary, int top_max) {
  check_sizes(rows, vocabulary, top_max);
  divider parts(nullptr);
  divide(parts, rows, vocabulary, top_max);
  return parts.bytes();
}

void sample(const sampling_params& p, stream& s) {
  check(p);
  if (p.rows == 0) return;
  divider parts(p.workspace);
  sampling_arguments a{};
  a.logits = p.logits;
  a.how = p.how;
  a.biases = p.biases;
  a.tokens = p.tokens;
  a.history = p.history;
  a.chosen = p.chosen;
  a.logprobs = p.logprobs;
  a.top_tokens = p.top_tokens;
  a.top_logprobs = p.top_logprobs;
  a.vocabulary = p.vocabulary;
  a.chunks = chunks_of(p.vocabulary);
  a.top_max = p.top_max;
  a.any_draws = p.any_draws;
  a.work = divide(parts, p.rows, p.vocabulary, p.top_max);
  const auto rows = static_cast<unsigned>(p.rows);
  const dim3 by_chunk(static_cast<unsigned>(a.chunks), rows);
  launch(s, shape_of<survey_memory>(by_chunk, "sampling survey"), survey_chunks, a);
  if (p.any_draws) {
    launch(s, shape_of<weigh_memory>(by_chunk, "sampling weigh"), weigh_chunks, a);
    launch(s, shape_of<collect_memory>(by_chunk, "sampling collect"), collect_candidates, a);
  }
  launch(s, shape_of<choose_memory>(dim3(rows), "sampling choose"), choose_tokens, a);
}

void clear_history(std::uint32_t* history, int vocabulary, int slot, stream& s) {
  launch(s, shape_for(vocabulary, "sampling clear history"), clear_words,
         words_of(history, vocabulary, slot), vocabulary);
}

void add_history(std::uint32_t* history, int vocabulary, int slot, const std::int32_t* tokens,
                 int count, bool prompt, stream& s) {
  require_range(count, 0, 0x7fffffff, kernel, "count");
  if (count == 0) return;
  require_pointer(tokens, kernel, "tokens");
  launch(s, shape_for(count, "sampling add history"), count_words,
         words_of(history, vocabulary, slot), vocabulary, tokens, count, prompt);
}

}  // namespace octavo::gpu
