// Stored forms to the lane layout: see repack.hpp.
#include "gpu/kernels/w4a16/repack.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "gpu/kernels/w4a16/lane_layout.hpp"
#include "gpu/kernels/w4a16/stored_codes.hpp"

namespace octavo::gpu {
namespace {

/// Inputs that a group is filled up to where groups are not already in order.
constexpr std::int64_t filled_group = 32;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Where inputs go, and which group of the file each group of the image is.
struct input_plan {
  std::vector<std::int32_t> order;
  std::vector<std::int64_t> file_groups;
};

template <class Codes>
std::vector<std::vector<std::int32_t>> members_of_groups(const Codes& stored,
                                                         std::int64_t columns) {
  std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(stored.groups()));
  for (std::int64_t k = 0; k < columns; ++k) {
    members[static_cast<std::size_t>(stored.group_of(k))].push_back(static_cast<std::int32_t>(k));
  }
  return members;
}

/// Inputs of each group together. Groups of one size that is a multiple of 32 stay
/// as they are (the last may be smaller); others are filled up to pieces of 32.
template <class Codes>
input_plan plan_inputs(const Codes& stored, lane_image& image) {
  const auto members = members_of_groups(stored, image.source_inputs);
  const auto size = static_cast<std::int64_t>(members.front().size());
  const bool even = std::all_of(members.begin(), members.end() - 1,
                                [&](const auto& group) { return std::ssize(group) == size; }) &&
                    std::ssize(members.back()) <= size;
  const bool regular = members.size() == 1 || (even && size % filled_group == 0);
  input_plan plan;
  for (std::size_t g = 0; g < members.size(); ++g) {
    plan.order.insert(plan.order.end(), members[g].begin(), members[g].end());
    // Rows of activations are read 16 bytes at a time.
    const std::int64_t unit = regular ? 8 : filled_group;
    plan.order.resize(static_cast<std::size_t>(round_up(std::ssize(plan.order), unit)), -1);
    const std::int64_t pieces =
        regular ? 1 : round_up(std::ssize(members[g]), filled_group) / filled_group;
    plan.file_groups.insert(plan.file_groups.end(), static_cast<std::size_t>(pieces),
                            static_cast<std::int64_t>(g));
  }
  image.inputs = std::ssize(plan.order);
  image.group = members.size() == 1 ? image.inputs : regular ? size : filled_group;
  bool plain = image.inputs == image.source_inputs;
  for (std::size_t i = 0; plain && i < plan.order.size(); ++i) {
    plain = plan.order[i] == static_cast<std::int32_t>(i);
  }
  if (!plain) image.order = plan.order;
  return plan;
}

/// 8-bit floats become 16-bit ones by moving bits, which leaves them too small by
/// this factor: scales make up for it. See e4m3_codec.
float scale_factor(const lane_image& image) {
  if (image.code != lane_code::e4m3) return 1.0F;
  return image.type == dtype::float16 ? 0x1p8F : 0x1p120F;
}

std::uint16_t narrow(float scale, const lane_image& image, const std::string& name) {
  const float value = scale * scale_factor(image);
  const bool half = image.type == dtype::float16;
  const std::uint16_t bits = half ? model::float_to_half(value) : model::float_to_bfloat(value);
  if (!std::isfinite(half ? model::half_to_float(bits) : model::bfloat_to_float(bits))) {
    throw input_error(name + ": a scale of " + std::to_string(scale) + " is outside of what " +
                      std::string(name_of(image.type)) + " weights can have; serve it as " +
                      (half ? "bfloat16" : "float16"));
  }
  return bits;
}

template <class Codes>
void write_scales(const Codes& stored, const input_plan& plan, const std::string& name,
                  lane_image& image) {
  const int bits = bits_of(image.code);
  const std::int64_t columns = round_up(image.outputs, lane_block_columns(bits));
  const auto middle = static_cast<std::uint8_t>(1U << (bits - 1));
  const std::size_t count = plan.file_groups.size() * static_cast<std::size_t>(columns);
  image.scales.assign(count, 0);
  image.zeros.assign(count, middle);
  bool symmetric = true;
  for (std::size_t g = 0; g < plan.file_groups.size(); ++g) {
    for (std::int64_t n = 0; n < image.outputs; ++n) {
      const std::size_t place = g * static_cast<std::size_t>(columns) +
                                static_cast<std::size_t>(lane_scale_place(n, bits));
      image.scales[place] = narrow(stored.scale(n, plan.file_groups[g]), image, name);
      image.zeros[place] = static_cast<std::uint8_t>(stored.zero(n, plan.file_groups[g]));
      symmetric = symmetric && image.zeros[place] == middle;
    }
  }
  if (symmetric) image.zeros.clear();
}

/// Whole rows that share one scale need none within the product: their sums are
/// scaled, in float.
bool takes_column_scales(const model::weight_matrix& matrix) {
  const auto* scaled = std::get_if<model::scaled_matrix>(&matrix);
  return scaled != nullptr && scaled->block_columns >= scaled->columns &&
         (scaled->block_rows == 1 || scaled->block_rows >= scaled->rows);
}

void write_column_scales(const model::scaled_matrix& scaled, lane_image& image) {
  const std::int64_t count = scaled.block_rows == 1 ? scaled.rows : 1;
  for (std::int64_t n = 0; n < count; ++n) image.column_scales.push_back(scaled.scales.at(n));
}

/// The 16 inputs x block of outputs at (slice, block), packed lane by lane.
template <class Codes>
void write_block(const Codes& stored, const input_plan& plan, std::int64_t slice,
                 std::int64_t block, lane_image& image) {
  constexpr int columns = lane_block_columns(Codes::bits);
  const std::int64_t blocks = round_up(image.outputs, columns) / columns;
  std::byte* out = image.codes.data() + (slice * blocks + block) * lane_block_bytes;
  for (int k = 0; k < lane_block_inputs; ++k) {
    const std::int64_t at = slice * lane_block_inputs + k;
    const std::int64_t input = at < image.inputs ? plan.order[static_cast<std::size_t>(at)] : -1;
    if (input < 0) continue;
    const std::int64_t first = block * columns;
    const std::int64_t last = std::min(first + columns, image.outputs);
    for (std::int64_t n = first; n < last; ++n) {
      const lane_place place = lane_code_place(k, n - first, 1, Codes::bits);
      out[place.byte] |= static_cast<std::byte>(stored.code(n, input) << place.shift);
    }
  }
}

template <class Codes>
void write_codes(const Codes& stored, const input_plan& plan, const parallel_for& parallel,
                 lane_image& image) {
  constexpr int columns = lane_block_columns(Codes::bits);
  const std::int64_t slices = round_up(image.inputs, lane_block_inputs) / lane_block_inputs;
  const std::int64_t blocks = round_up(image.outputs, columns) / columns;
  image.codes.assign(static_cast<std::size_t>(slices * blocks * lane_block_bytes), std::byte{0});
  parallel(static_cast<std::size_t>(slices), [&](std::size_t slice) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      write_block(stored, plan, static_cast<std::int64_t>(slice), block, image);
    }
  });
}

}  // namespace

void run_serially(std::size_t count, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = 0; i < count; ++i) body(i);
}

lane_image repack(const model::weight_matrix& matrix, dtype type, const std::string& name,
                  const parallel_for& parallel) {
  if (type != dtype::float16 && type != dtype::bfloat16) {
    throw input_error(name + ": quantized weights run in float16 or bfloat16, not in " +
                      std::string(name_of(type)));
  }
  lane_image image;
  image.type = type;
  image.outputs = model::rows_of(matrix);
  image.source_inputs = model::columns_of(matrix);
  const bool known = with_stored_codes(matrix, [&](const auto& stored) {
    using codes = std::decay_t<decltype(stored)>;
    image.code = codes::bits == 4 ? lane_code::int4 : lane_code::int8;
    const auto* scaled = std::get_if<model::scaled_matrix>(&matrix);
    if (scaled != nullptr && scaled->type == model::element_type::f8_e4m3) {
      image.code = lane_code::e4m3;
    }
    const input_plan plan = plan_inputs(stored, image);
    if (takes_column_scales(matrix)) {
      write_column_scales(*scaled, image);
    } else {
      write_scales(stored, plan, name, image);
    }
    write_codes(stored, plan, parallel, image);
  });
  if (!known) {
    throw input_error(name +
                      ": the CUDA executor takes AWQ, GPTQ, compressed-tensors and 8-bit "
                      "float weights; GGUF blocks run on the CPU");
  }
  return image;
}

}  // namespace octavo::gpu
