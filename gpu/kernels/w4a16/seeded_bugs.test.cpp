// Mistakes made on purpose: each must show in the results, under some schedule.
#if !defined(OCTAVO_NATIVE_CUDA)
#include "gpu/kernels/dense_gemm/tile_launch.cuh"
#include "gpu/kernels/w4a16/int4_codec.cuh"
#include "gpu/kernels/w4a16/lane_launch.cuh"
#include "gpu/kernels/w4a16/stored_samples.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

/// Zero points too large by one, as a reader of the second version of GPTQ that takes
/// it for the first would have them.
struct wrong_zero_codec : int4_codec<__half> {
  static factors unpack_factors(const uint4& scales, const uint2& zeros) {
    factors f = int4_codec<__half>::unpack_factors(scales, zeros);
    for (auto& zero : f.zero) zero += 0x00010001U;
    return f;
  }
};

template <class Codec, seeded_bug bug>
void launch_seeded(stream& on, const lane_product& p) {
  tile_arguments t;
  t.activations = p.activations;
  t.weights = p.weights.codes;
  t.scales = p.weights.scales;
  t.zeros = p.weights.zeros;
  t.inputs = p.weights.inputs;
  t.group = p.weights.group;
  t.blocks = (p.weights.outputs + Codec::block_columns - 1) / Codec::block_columns;
  t.output = output_of(p);
  const tile_plan plan = plan_lane_tiles(p, 4);
  t.stages = plan.stages;
  t.run_stages = plan.run_stages;
  t.output.partials = static_cast<float*>(p.workspace.data);
  t.output.counters = p.workspace.counters;
  using operand = lane_operand<Codec>;
  launch(on,
         launch_shape{dim3(static_cast<unsigned>(plan.runs)), dim3(tile_threads),
                      tile_shared_bytes<operand, 16>(t.group)},
         tile_gemm<operand, 16, bug>, t);
}

/// Under how many schedules the results are wrong.
template <class Codec, seeded_bug bug>
int schedules_that_show() {
  stored_sample stored(41);
  stored.make_awq(128, 1280, 128);
  int wrong = 0;
  simt::for_each_schedule([&](const char*) {
    lane_case c(stored.matrix, dtype::float16, 9);
    c.product.path = lane_path::tiles;
    const std::vector<float> got = c.run(w4a16_needs, launch_seeded<Codec, bug>);
    if (!(c.error(stored, got) < float_sum_error)) ++wrong;
  });
  return wrong;
}

}  // namespace

TEST_CASE("seeded: the harness without a mistake finds none") {
  CHECK(schedules_that_show<int4_codec<__half>, seeded_bug::none>() == 0);
}

TEST_CASE("seeded: a missing wait for copies is found") {
  CHECK(schedules_that_show<int4_codec<__half>, seeded_bug::no_wait>() > 0);
}

TEST_CASE("seeded: a missing barrier is found") {
  CHECK(schedules_that_show<int4_codec<__half>, seeded_bug::no_barrier>() > 0);
}

TEST_CASE("seeded: a wrong zero point is found under every schedule") {
  CHECK(schedules_that_show<wrong_zero_codec, seeded_bug::none>() == 8);
}
#endif
