// Faults put into the kernels on purpose: the comparison with double must find each
// under some schedule, or it would not find them when they are made by mistake. On a
// device there are no schedules to find them with.
#if !defined(OCTAVO_NATIVE_CUDA)
#include "gpu/kernels/paged_attention/launchers.cuh"
#include "gpu/kernels/paged_attention/narrow.cuh"
#include "gpu/kernels/paged_attention/test_batch.hpp"
#include "gpu/kernels/paged_attention/vector.cuh"
#include "gpu/kernels/paged_attention/wide.cuh"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

using half = __half;

attention_shape shape_of(int group) {
  attention_shape shape;
  shape.kv_heads = 1;
  shape.heads = group;
  shape.head_dim = 64;
  shape.type = shape.kv_type = dtype::float16;
  return shape;
}

/// Schedules under which the outputs of `kernel` are wrong.
template <class Kernel>
int schedules_that_find(const attention_shape& shape, const std::vector<test_sequence>& sequences,
                        int threads, int shared_bytes, bool wide, Kernel kernel) {
  int found = 0;
  simt::for_each_schedule([&](const char*) {
    const test_batch batch(shape, sequences, {.multiprocessors = 1});
    stream s;
    const auto d = batch.upload(s);
    const std::size_t offset = wide ? d.run.capacity.wide_offset() : 0;
    launch_items(d.run, s, wide ? d.run.launch.wide : d.run.launch.narrow, threads, shared_bytes,
                 kernel, arguments_of<half, half>(d.run, offset));
    if (!(batch.worst_error(batch.download(s, d)) < 3)) ++found;
  });
  return found;
}

template <attention_bug bug>
int narrow_with() {
  using config = narrow_config<half, half, 64, bug>;
  return schedules_that_find(shape_of(4), {{127}}, config::threads, narrow_layout<config>::bytes,
                             false, attend_narrow<config>);
}

template <attention_bug bug>
int wide_with() {
  using config = wide_config<half, half, 64, bug>;
  return schedules_that_find(shape_of(4), {{60, 40}}, config::threads, wide_layout<config>::bytes,
                             true, attend_wide<config>);
}

template <attention_bug bug>
int vector_with() {
  using config = vector_config<half, half, 64, 2, bug>;
  return schedules_that_find(shape_of(2), {{127}}, config::threads, vector_layout<config>::bytes,
                             false, attend_vector<config>);
}

}  // namespace

TEST_CASE("kernels without a fault are right under every schedule") {
  CHECK(narrow_with<attention_bug::none>() == 0);
  CHECK(wide_with<attention_bug::none>() == 0);
  CHECK(vector_with<attention_bug::none>() == 0);
}

TEST_CASE("a page off by one is found under every schedule") {
  CHECK(narrow_with<attention_bug::page_off_by_one>() == 8);
  CHECK(vector_with<attention_bug::page_off_by_one>() == 8);
}

TEST_CASE("a missing barrier before warps' results are merged is found") {
  CHECK(narrow_with<attention_bug::merge_without_barrier>() > 0);
  CHECK(vector_with<attention_bug::merge_without_barrier>() > 0);
}

TEST_CASE("a missing barrier between shared pages and their readers is found") {
  CHECK(wide_with<attention_bug::merge_without_barrier>() > 0);
}

TEST_CASE("reading pages that have not landed is found") {
  CHECK(narrow_with<attention_bug::read_without_wait>() > 0);
  CHECK(wide_with<attention_bug::read_without_wait>() > 0);
}
#endif
