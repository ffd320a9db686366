// What a GPU is, in numbers: peaks, memory, link and price, each with its source
// in the data file, and how near its kernels come to those peaks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::sim {

/// How near real kernels come to the peaks. Fractions of 1 and microseconds;
/// what each one does is in sim/cost/kernels.hpp. The defaults suit an unknown
/// GPU of the Hopper class.
struct gpu_efficiency {
  /// Start and end of a 16-bit and of an 8-bit matrix multiplication.
  double gemm_floor_us = 2.9;
  double gemm_floor_8bit_us = 5.7;
  double gemm_bandwidth = 0.80;
  double gemm_compute = 0.95;
  double gemm_compute_8bit = 0.57;
  double decode_floor_us = 11.0;
  double decode_bandwidth = 0.90;
  /// One (sequence, key-value head) on one processor.
  double decode_item_us = 4.0;
  /// Merging the parts of a context that is cut.
  double decode_split_us = 3.0;
  double prefill_floor_us = 11.0;
  double prefill_compute = 0.60;
  double elementwise_floor_us = 2.0;
  double elementwise_bandwidth = 0.70;
  /// Share of the link that direct reads of peers' memory reach, …
  double allreduce_link = 0.65;
  /// … and that a ring reaches.
  double ring_link = 0.70;
  double ring_latency_us = 15.0;
};

struct gpu_spec {
  std::string name;
  std::string title;
  /// Streaming multiprocessors, compute units or cores.
  std::int64_t processors = 0;
  /// Dense peaks, operations per second. 0 = the format is not computed with
  /// (it can still be stored).
  double fp16_flops = 0;
  double fp8_flops = 0;
  double int8_ops = 0;
  std::int64_t memory_bytes = 0;
  /// Bytes per second.
  double bandwidth = 0;
  /// "nvlink", "pcie", "infinity-fabric", "none".
  std::string link_kind;
  /// Bytes per second in one direction between two GPUs of a node.
  double link_bandwidth = 0;
  double link_latency_us = 0;
  double price_usd_per_hour = 0;
  gpu_efficiency efficiency;
};

/// Reads the text of an `octavo.gpu/1` file. `where` names it in messages.
/// Throws input_error naming the field that is missing or out of range.
[[nodiscard]] gpu_spec parse_gpu(std::string_view text, std::string_view where);

}  // namespace octavo::sim
