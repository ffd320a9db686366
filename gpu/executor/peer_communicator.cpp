// Ranks that meet on their devices: see peer_communicator.hpp.
#include "gpu/executor/peer_communicator.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "gpu/kernels/all_reduce/all_gather.hpp"
#include "gpu/runtime/device.hpp"

namespace octavo::gpu {
namespace {

/// `from` moved on by `elements`; null stays null.
template <class Pointer>
Pointer after(Pointer from, std::size_t elements, dtype type) {
  if (from == nullptr) return nullptr;
  using byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte,
                                  std::byte>;
  return static_cast<byte*>(from) + elements * bytes_of(type);
}

all_reduce_params sum_of(const partial_rows& partial) {
  all_reduce_params p;
  p.type = dtype::float32;
  p.rows = partial.rows;
  p.width = partial.width;
  p.input = partial.values;
  return p;
}

}  // namespace

// Flags must be zero before any rank's first call: the devices are waited for.
peer_communicator::peer_communicator(const std::vector<int>& devices, std::size_t payload_bytes,
                                     std::unique_ptr<communicator> larger)
    : ends_waiting_(1), larger_(std::move(larger)) {
  if (devices.empty() || devices.size() > peer_ranks_max) {
    throw input_error("tensor_parallel_size is " + std::to_string(devices.size()) + "; 1 to " +
                      std::to_string(peer_ranks_max) + " are allowed");
  }
  if (payload_bytes < sizeof(float)) {
    throw input_error("payload_bytes is " + std::to_string(payload_bytes) +
                      "; 4 and more are allowed");
  }
  ends_waiting_[0] = 0;
  group_.ranks = static_cast<int>(devices.size());
  group_.payload_bytes = payload_bytes;
  group_.abandoned = ends_waiting_.data();
  const int current = current_device();
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    set_device(devices[rank]);
    stream on;
    memory_.emplace_back(peer_memory_bytes(payload_bytes));
    memory_.back().fill_zero(on);
    on.synchronize();
    group_.memory[rank] = memory_.back().data();
  }
  set_device(current);
}

peer_group peer_communicator::group_of(int rank) const {
  peer_group group = group_;
  group.rank = rank;
  return group;
}

// As many rows at a time as an exchange takes.
void peer_communicator::reduce(stream& on, int rank, all_reduce_params p) const {
  require_working();
  const auto width = static_cast<std::size_t>(p.width);
  const std::size_t fitting = group_.payload_bytes / (width * bytes_of(p.type));
  const int rows = p.rows;
  const int step = static_cast<int>(std::clamp<std::size_t>(fitting, 1, 1 << 30));
  for (int done = 0; done < rows; done += step) {
    p.rows = std::min(step, rows - done);
    all_reduce(group_of(rank), p, on);
    const std::size_t elements = static_cast<std::size_t>(p.rows) * width;
    p.input = after(p.input, elements, p.type);
    p.output = after(p.output, elements, p.output_type);
    if (p.residual != nullptr) p.residual += elements;
  }
}

void peer_communicator::sum(stream& on, int rank, const partial_rows& partial, dtype type,
                            void* output) {
  if (!takes(partial.count())) return larger_->sum(on, rank, partial, type, output);
  all_reduce_params p = sum_of(partial);
  p.output_type = type;
  p.output = output;
  reduce(on, rank, p);
}

void peer_communicator::sum_and_norm(stream& on, int rank, const partial_rows& partial,
                                     rms_norm_params norm, void* branch) {
  if (!takes(partial.count())) return larger_->sum_and_norm(on, rank, partial, norm, branch);
  all_reduce_params p = sum_of(partial);
  p.residual = norm.residual;
  p.epsilon = norm.epsilon;
  p.input_weight = norm.input_weight;
  p.weight = norm.weight;
  p.weight_type = norm.weight_type;
  p.output_type = norm.type;
  p.output = norm.output;
  reduce(on, rank, p);
}

void peer_communicator::gather(stream& on, int rank, const float* part, std::size_t count,
                               float* output) {
  if (!takes(count)) return larger_->gather(on, rank, part, count, output);
  require_working();
  const std::size_t step = group_.payload_bytes / sizeof(float);
  for (std::size_t done = 0; done < count; done += step) {
    const std::size_t now = std::min(step, count - done);
    all_gather(group_of(rank), {now, part + done, output + done, count}, on);
  }
}

// All ranks make the same calls while they pass, so that they agree on their number again.
void peer_communicator::let_pass(bool all) {
  if (abandoned_) return;
  std::atomic_ref(ends_waiting_[0]).store(all ? 1 : 0, std::memory_order_release);
  if (larger_ != nullptr) larger_->let_pass(all);
}

void peer_communicator::abandon() {
  abandoned_ = true;
  std::atomic_ref(ends_waiting_[0]).store(1, std::memory_order_release);
  if (larger_ != nullptr) larger_->abandon();
}

}  // namespace octavo::gpu
