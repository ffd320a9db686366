// The launcher: see rope_kv_write.hpp.
#include "gpu/kernels/rope_kv_write/rope_kv_write.cuh"

#include <string>

#include "core/error.hpp"

namespace octavo::gpu {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& given,
                         const std::string& allowed) {
  throw input_error("rope and KV write: " + field + " is " + given + "; allowed is " + allowed);
}

void check_at_least(std::int64_t value, std::int64_t least, const char* field) {
  if (value < least) refuse(field, std::to_string(value), "at least " + std::to_string(least));
}

void check_address(const void* address, const char* field) {
  if (address == nullptr) refuse(field, "null", "device memory");
}

void check_tensor(const void* address, std::int64_t stride, int heads, int head_dim,
                  const char* field) {
  check_address(address, field);
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) {
    refuse(field, "not aligned", "a multiple of 16 bytes");
  }
  const std::int64_t width = static_cast<std::int64_t>(heads) * head_dim;
  if (stride < width || stride % 8 != 0) {
    refuse(std::string(field) + "' stride", std::to_string(stride),
           "a multiple of 8, at least " + std::to_string(width));
  }
}

void check_rope(const rope_source& rope, int head_dim) {
  if (rope.pairs < 0 || 2 * rope.pairs > head_dim) {
    refuse("rope.pairs", std::to_string(rope.pairs), "0 to half of head_dim");
  }
  if (rope.pairs == 0) return;
  if ((rope.cosines == nullptr) != (rope.sines == nullptr)) {
    refuse("rope.sines", "given without cosines or lacking", "both or none");
  }
  if (rope.cosines != nullptr) {
    check_at_least(rope.table_positions, 1, "rope.table_positions");
  } else {
    check_address(rope.turns, "rope.turns");
  }
}

void check(const rope_kv_write_run& run) {
  check_at_least(run.rows, 0, "rows");
  check_at_least(run.heads, 1, "heads");
  check_at_least(run.kv_heads, 1, "kv_heads");
  if (run.head_dim < 16 || run.head_dim > 256 || run.head_dim % 16 != 0) {
    refuse("head_dim", std::to_string(run.head_dim), "a multiple of 16 from 16 to 256");
  }
  if (run.type != dtype::float16 && run.type != dtype::bfloat16) {
    refuse("type", std::string(name_of(run.type)), "float16 or bfloat16");
  }
  if (run.kv_type != run.type && run.kv_type != dtype::float8_e4m3) {
    refuse("kv_type", std::string(name_of(run.kv_type)),
           std::string(name_of(run.type)) + " or float8_e4m3");
  }
  check_tensor(run.queries, run.query_stride, run.heads, run.head_dim, "queries");
  check_tensor(run.keys, run.key_stride, run.kv_heads, run.head_dim, "keys");
  check_tensor(run.values, run.value_stride, run.kv_heads, run.head_dim, "values");
  check_tensor(run.queries_out, run.queries_out_stride, run.heads, run.head_dim, "queries_out");
  check_rope(run.rope, run.head_dim);
  check_address(run.positions, "positions");
  check_address(run.sequence_of_row, "sequence_of_row");
  check_address(run.sequence_tables, "sequence_tables");
  check_address(run.tables, "tables");
  check_address(run.key_pages, "key_pages");
  check_address(run.value_pages, "value_pages");
  if (!(run.key_scale > 0)) refuse("key_scale", std::to_string(run.key_scale), "more than 0");
  if (!(run.value_scale > 0)) refuse("value_scale", std::to_string(run.value_scale), "more than 0");
}

template <class T>
void launch_for(const rope_kv_write_run& run, stream& s) {
  const auto kernel =
      run.kv_type == dtype::float8_e4m3 ? rope_and_write<T, __nv_fp8_e4m3> : rope_and_write<T, T>;
  launch(s, rope_launch_shape(run), kernel, run);
}

}  // namespace

void rope_kv_write(const rope_kv_write_run& run, stream& s) {
  check(run);
  if (run.rows == 0) return;
  run.type == dtype::float16 ? launch_for<__half>(run, s) : launch_for<__nv_bfloat16>(run, s);
}

}  // namespace octavo::gpu
