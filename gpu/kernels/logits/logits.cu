// Checks parameters of logits.hpp and chooses the instance of its kernel.
#include "gpu/kernels/logits/logits.hpp"

#include "gpu/kernels/common/launching.hpp"
#include "gpu/kernels/logits/logits.cuh"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* kernel = "logits";

void check(const logits_params& p) {
  require_range(p.rows, 0, 0x7fffffff, kernel, "rows");
  require_range(p.shards, 1, 1024, kernel, "shards");
  require_range(p.shard_width, 1, 1 << 24, kernel, "shard_width");
  require_range(p.vocabulary, 1, std::int64_t{p.shards} * p.shard_width, kernel, "vocabulary");
  require_field(p.soft_cap >= 0, kernel, "soft_cap", std::to_string(p.soft_cap), "0 and more");
  require_pointer(p.input, kernel, "input");
  require_pointer(p.output, kernel, "output");
  const bool in_place = p.input == p.output;
  require_field(
      !in_place || (p.type == dtype::float32 && p.shards == 1 && p.shard_width == p.vocabulary),
      kernel, "output", "the input",
      "the input only where it is one shard of float32 without padding");
}

}  // namespace

void finish_logits(const logits_params& p, stream& s) {
  check(p);
  if (p.rows == 0) return;
  with_float_type(p.type, kernel, "type", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const logits_arguments<T> a{static_cast<const T*>(p.input),
                                p.output,
                                p.rows,
                                p.vocabulary,
                                p.shard_width,
                                p.scale,
                                p.soft_cap};
    const unsigned blocks =
        (static_cast<unsigned>(p.vocabulary) + logits_per_block - 1) / logits_per_block;
    launch_shape shape{dim3(static_cast<unsigned>(p.rows), blocks), dim3(logits_threads)};
    shape.name = kernel;
    launch(s, shape, finish_logit_rows<T>, a);
  });
}

}  // namespace octavo::gpu
