// Stacks of stored weights: see weight_stack.hpp.
#include "model/quantized/weight_stack.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

namespace octavo::model {
namespace {

using bytes = std::span<const std::byte>;
template <class Matrix>
using matrices = std::vector<const Matrix*>;

/// Joins tables of the parts and keeps the copies.
class stacker {
 public:
  /// Tables of `lines` lines each: every line becomes the parts' lines one after another.
  bytes join(const std::vector<bytes>& tables, std::int64_t lines) {
    std::size_t size = 0;
    for (const bytes table : tables) size += table.size();
    std::vector<std::byte>& out = copies.emplace_back();
    out.reserve(size);
    for (std::int64_t line = 0; line < lines; ++line) {
      for (const bytes table : tables) {
        const std::size_t width = table.size() / static_cast<std::size_t>(lines);
        const bytes part = table.subspan(static_cast<std::size_t>(line) * width, width);
        out.insert(out.end(), part.begin(), part.end());
      }
    }
    return out;
  }
  template <class Matrix>
  bytes join(const matrices<Matrix>& parts, bytes Matrix::*table, std::int64_t lines) {
    std::vector<bytes> tables;
    for (const Matrix* part : parts) tables.push_back(part->*table);
    return join(tables, lines);
  }
  template <class Matrix>
  scale_array join_scales(const matrices<Matrix>& parts, std::int64_t lines) {
    std::vector<bytes> tables;
    for (const Matrix* part : parts) tables.push_back(part->scales.bytes);
    return {parts.front()->scales.type, join(tables, lines)};
  }

  /// A scale for each row of parts whose scales are those of whole rows.
  scale_array spread_scales(const matrices<scaled_matrix>& parts) {
    const element_type type = parts.front()->scales.type;
    const auto width = static_cast<std::size_t>(info(type).block_bytes);
    std::vector<std::byte>& out = copies.emplace_back();
    for (const scaled_matrix* part : parts) {
      for (std::int64_t n = 0; n < part->rows; ++n) {
        const auto at = static_cast<std::size_t>(n / part->block_rows) * width;
        const bytes scale = part->scales.bytes.subspan(at, width);
        out.insert(out.end(), scale.begin(), scale.end());
      }
    }
    return {type, out};
  }

  std::vector<std::vector<std::byte>> copies;
};

template <class Matrix>
std::int64_t rows_of_all(const matrices<Matrix>& parts) {
  std::int64_t rows = 0;
  for (const Matrix* part : parts) rows += part->rows;
  return rows;
}

bool equal(bytes a, bytes b) {
  return std::ranges::equal(a, b);
}

/// Does every part but the last end between units of rows?
template <class Matrix>
bool ends_between(const matrices<Matrix>& parts, std::int64_t unit) {
  return std::all_of(parts.begin(), parts.end() - 1,
                     [&](const Matrix* part) { return part->rows % unit == 0; });
}

bool fit(const block_matrix&, const block_matrix&) {
  return false;
}

bool fit(const awq_matrix& a, const awq_matrix& b) {
  return a.group == b.group && a.zeros.empty() == b.zeros.empty();
}

bool fit(const gptq_matrix& a, const gptq_matrix& b) {
  return a.bits == b.bits && a.group == b.group && a.zero_offset == b.zero_offset &&
         equal(a.groups, b.groups);
}

bool fit(const packed_matrix& a, const packed_matrix& b) {
  return a.bits == b.bits && a.group == b.group && a.zeros.empty() == b.zeros.empty() &&
         equal(a.groups, b.groups);
}

bool has_whole_rows(const scaled_matrix& m) {
  return m.block_columns >= m.columns;
}

bool fit(const scaled_matrix& a, const scaled_matrix& b) {
  if (a.type != b.type) return false;
  if (has_whole_rows(a) || has_whole_rows(b)) return has_whole_rows(a) && has_whole_rows(b);
  return a.block_rows == b.block_rows && a.block_columns == b.block_columns;
}

bool stack(stacker&, const matrices<block_matrix>&, block_matrix&) {
  return false;
}

bool stack(stacker& join, const matrices<awq_matrix>& parts, awq_matrix& out) {
  const std::int64_t groups = out.columns / out.group;
  out.codes = join.join(parts, &awq_matrix::codes, out.columns);
  out.zeros = join.join(parts, &awq_matrix::zeros, groups);
  out.scales = join.join_scales(parts, groups);
  return true;
}

bool stack(stacker& join, const matrices<gptq_matrix>& parts, gptq_matrix& out) {
  const std::int64_t groups = out.columns / out.group;
  out.codes = join.join(parts, &gptq_matrix::codes, out.columns * out.bits / 32);
  out.zeros = join.join(parts, &gptq_matrix::zeros, groups);
  out.scales = join.join_scales(parts, groups);
  return true;
}

bool stack(stacker& join, const matrices<packed_matrix>& parts, packed_matrix& out) {
  if (!out.zeros.empty() && !ends_between(parts, 32 / out.bits)) return false;
  out.codes = join.join(parts, &packed_matrix::codes, 1);
  out.zeros = join.join(parts, &packed_matrix::zeros, 1);
  out.scales = join.join_scales(parts, 1);
  return true;
}

bool stack(stacker& join, const matrices<scaled_matrix>& parts, scaled_matrix& out) {
  if (has_whole_rows(out)) {
    out.block_rows = 1;
    out.scales = join.spread_scales(parts);
  } else {
    if (!ends_between(parts, out.block_rows)) return false;
    out.scales = join.join_scales(parts, 1);
  }
  out.codes = join.join(parts, &scaled_matrix::codes, 1);
  return true;
}

template <class Matrix>
std::optional<weight_slice> stack_as(const Matrix& first, std::span<const weight_matrix> all) {
  matrices<Matrix> parts;
  for (const weight_matrix& one : all) {
    const auto* part = std::get_if<Matrix>(&one);
    if (part == nullptr || part->columns != first.columns || !fit(first, *part)) return {};
    if constexpr (requires { part->scales; }) {
      if (part->scales.type != first.scales.type) return {};
    }
    parts.push_back(part);
  }
  stacker join;
  Matrix out = first;
  if (!stack(join, parts, out)) return {};
  out.rows = rows_of_all(parts);
  return weight_slice{out, std::move(join.copies)};
}

}  // namespace

std::optional<weight_slice> stack_rows(std::span<const weight_matrix> parts) {
  assert(!parts.empty());
  return std::visit([&](const auto& first) { return stack_as(first, parts); }, parts.front());
}

}  // namespace octavo::model
