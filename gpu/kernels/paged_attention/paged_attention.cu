// The launcher: see paged_attention.hpp.
#include "gpu/kernels/paged_attention/paged_attention.hpp"

#include <cstdint>
#include <string>

#include "gpu/kernels/paged_attention/launchers.cuh"
#include "gpu/kernels/paged_attention/merge.cuh"

namespace octavo::gpu {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& given,
                         const std::string& allowed) {
  throw input_error("paged attention: " + field + " is " + given + "; allowed is " + allowed);
}

void check_pointer(const void* address, const char* field) {
  if (address == nullptr) refuse(field, "null", "device memory");
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) {
    refuse(field, "not aligned", "a multiple of 16 bytes");
  }
}

void check_stride(std::int64_t stride, const attention_shape& shape, const char* field) {
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.head_dim;
  if (stride < width || stride % 8 != 0) {
    refuse(field, std::to_string(stride),
           "a multiple of 8, at least heads * head_dim = " + std::to_string(width));
  }
}

void check_count(int count, int capacity, const char* field) {
  if (count < 0 || count > capacity) {
    refuse(field, std::to_string(count), "0 to the capacity " + std::to_string(capacity));
  }
}

void check(const paged_attention_run& run) {
  check_shape(run.shape);
  check_pointer(run.plan, "plan");
  check_pointer(run.tables, "tables");
  check_pointer(run.queries, "queries");
  check_pointer(run.keys, "keys");
  check_pointer(run.values, "values");
  check_pointer(run.out, "out");
  check_pointer(run.workspace, "workspace");
  check_stride(run.query_stride, run.shape, "query_stride");
  check_stride(run.out_stride, run.shape, "out_stride");
  check_count(run.launch.narrow, run.capacity.narrow, "launch.narrow");
  check_count(run.launch.wide, run.capacity.wide, "launch.wide");
  check_count(run.launch.merges, run.capacity.merges, "launch.merges");
  if (!(run.scale > 0)) refuse("scale", std::to_string(run.scale), "more than 0");
  if (!(run.soft_cap >= 0)) refuse("soft_cap", std::to_string(run.soft_cap), "0 (none) or more");
  if (!(run.key_scale > 0)) refuse("key_scale", std::to_string(run.key_scale), "more than 0");
  if (!(run.value_scale > 0)) {
    refuse("value_scale", std::to_string(run.value_scale), "more than 0");
  }
}

void launch_merges(const paged_attention_run& run, stream& s) {
  with_types(run.shape, [&](auto type, auto) {
    with_head_dim(run.shape, [&](auto dim) {
      using T = typename decltype(type)::type;
      merge_arguments<T> a;
      a.items = reinterpret_cast<const merge_item*>(run.plan + run.capacity.merges_offset());
      a.partial_out = partial_out_of(run);
      a.partial_sums = partial_sums_of(run);
      a.out = static_cast<T*>(run.out);
      a.out_stride = run.out_stride;
      a.group = run.shape.group();
      a.value_scale = run.value_scale;
      launch_items(run, s, run.launch.merges, merge_threads, 0,
                   merge_partials<T, decltype(dim)::value>, a);
    });
  });
}

}  // namespace

void paged_attention(const paged_attention_run& run, stream& s) {
  check(run);
  if (run.launch.narrow > 0) {
    uses_vector_kernel(run.shape) ? launch_vector(run, s) : launch_narrow(run, s);
  }
  if (run.launch.wide > 0) launch_wide(run, s);
  if (run.launch.merges > 0) launch_merges(run, s);
}

}  // namespace octavo::gpu
