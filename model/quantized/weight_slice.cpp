// Cuts of stored weights: see weight_slice.hpp.
#include "model/quantized/weight_slice.hpp"

#include <cassert>
#include <cstring>
#include <numeric>

#include "core/error.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::model {
namespace {

using bytes = std::span<const std::byte>;
/// Source lines (or columns) in the order of the slice; they may repeat.
using places = std::vector<std::int64_t>;

/// A piece of a group of inputs that is smaller is not worth a scale of its own.
constexpr std::int64_t piece_inputs_min = 32;

places all_of(index_range range) {
  places out(static_cast<std::size_t>(range.size()));
  std::iota(out.begin(), out.end(), range.begin);
  return out;
}

class cutter {
 public:
  explicit cutter(const std::string& name) : name_(name) {}

  /// Bytes `across` of the lines in `lines`, each `width` bytes wide.
  bytes window(bytes table, std::int64_t width, index_range lines, index_range across) {
    if (across.size() == width) return table.subspan(lines.begin * width, lines.size() * width);
    std::byte* out = room(lines.size() * across.size());
    for (std::int64_t line = lines.begin; line < lines.end; ++line, out += across.size()) {
      std::memcpy(out, table.data() + line * width + across.begin, across.size());
    }
    return copies.back();
  }

  /// Chosen elements of chosen lines of a table with `width` elements in a line.
  bytes chosen(bytes table, std::int64_t width, std::int64_t element_bytes, const places& lines,
               const places& columns) {
    std::byte* out = room(std::ssize(lines) * std::ssize(columns) * element_bytes);
    for (const std::int64_t line : lines) {
      for (const std::int64_t column : columns) {
        std::memcpy(out, table.data() + (line * width + column) * element_bytes, element_bytes);
        out += element_bytes;
      }
    }
    return copies.back();
  }
  scale_array chosen(const scale_array& table, std::int64_t width, const places& lines,
                     const places& columns) {
    return {table.type, chosen(table.bytes, width, info(table.type).block_bytes, lines, columns)};
  }

  /// Both ends of the range, of `total`, must lie between units.
  void check_units(index_range range, std::int64_t unit, std::int64_t total, const char* what,
                   const std::string& unit_name) const {
    for (const std::int64_t at : {range.begin, range.end}) {
      if (at % unit == 0 || at == total) continue;
      throw infeasible_error(name_ + ": a cut at " + what + " " + std::to_string(at) +
                             " would split " + unit_name + " (" + std::to_string(at) + " = " +
                             std::to_string(at / unit) + " x " + std::to_string(unit) + " + " +
                             std::to_string(at % unit) + "); allowed sizes for " +
                             std::to_string(total) + " " + what + "s: " + sizes(total, unit));
    }
  }

  /// The groups of a slice: how many inputs (or outputs) each has, and whose scale.
  struct regrouping {
    std::int64_t size;
    places sources;
  };
  static regrouping regroup(index_range range, std::int64_t group) {
    regrouping made{std::gcd(std::gcd(range.begin, range.size()), group), {}};
    for (std::int64_t at = range.begin; at < range.end; at += made.size) {
      made.sources.push_back(at / group);
    }
    return made;
  }
  [[nodiscard]] regrouping regroup_inputs(index_range range, std::int64_t group,
                                          std::int64_t total) const {
    regrouping made = regroup(range, group);
    if (made.sources.size() > 1 && made.size < group && made.size < piece_inputs_min) {
      check_units(range, std::gcd(group, piece_inputs_min), total, "input",
                  "a group of " + std::to_string(group) + " into pieces of fewer than " +
                      std::to_string(piece_inputs_min));
    }
    return made;
  }

  /// The inputs' groups of a slice that has the scales of all `count` groups.
  struct order {
    std::int64_t group;
    bytes groups;
  };
  [[nodiscard]] order reorder(bytes groups, index_range range, std::int64_t count) const {
    if (range.size() % count != 0) {
      throw infeasible_error(
          name_ + ": " + std::to_string(range.size()) + " inputs of a rank do not divide by the " +
          std::to_string(count) + " groups that inputs belong to in an order of their own (" +
          std::to_string(range.size()) + " = " + std::to_string(range.size() / count) + " x " +
          std::to_string(count) + " + " + std::to_string(range.size() % count) + ")");
    }
    return {range.size() / count, groups.subspan(4 * range.begin, 4 * range.size())};
  }

  std::vector<std::vector<std::byte>> copies;

 private:
  std::byte* room(std::int64_t size) {
    return copies.emplace_back(static_cast<std::size_t>(size)).data();
  }

  /// Tensor-parallel sizes whose cuts of `total` all fall between units.
  static std::string sizes(std::int64_t total, std::int64_t unit) {
    std::string text = "1";
    for (std::int64_t size = 2; size <= 64; ++size) {
      if (total % (size * unit) == 0) text += ", " + std::to_string(size);
    }
    return text;
  }

  const std::string& name_;
};

/// Do inputs belong to groups in an order of their own? Files without desc_act may
/// spell the plain order out.
bool is_ordered(bytes groups, std::int64_t group, std::int64_t columns) {
  if (groups.empty()) return false;
  for (std::int64_t k = 0; k < columns; ++k) {
    if (load<std::int32_t>(groups.data() + 4 * k) != k / group) return true;
  }
  return false;
}

block_matrix cut_rows(cutter& cut, const block_matrix& m, index_range rows) {
  const std::int64_t width = bytes_of(m.type, m.columns);
  return {rows.size(), m.columns, m.type, cut.window(m.bytes, width, rows, {0, width})};
}

awq_matrix cut_rows(cutter& cut, const awq_matrix& m, index_range rows) {
  cut.check_units(rows, 8, m.rows, "output", "a word of 8 codes");
  awq_matrix out = m;
  const std::int64_t groups = m.columns / m.group;
  const index_range words{rows.begin / 2, rows.end / 2};  // in bytes: 4 for 8 outputs
  out.rows = rows.size();
  out.codes = cut.window(m.codes, m.rows / 2, {0, m.columns}, words);
  if (!m.zeros.empty()) out.zeros = cut.window(m.zeros, m.rows / 2, {0, groups}, words);
  out.scales = cut.chosen(m.scales, m.rows, all_of({0, groups}), all_of(rows));
  return out;
}

gptq_matrix cut_rows(cutter& cut, const gptq_matrix& m, index_range rows) {
  cut.check_units(rows, 32 / m.bits, m.rows, "output",
                  "a word of " + std::to_string(32 / m.bits) + " zero points");
  gptq_matrix out = m;
  const std::int64_t groups = m.columns / m.group;
  out.rows = rows.size();
  out.codes =
      cut.window(m.codes, 4 * m.rows, {0, m.columns * m.bits / 32}, {4 * rows.begin, 4 * rows.end});
  out.zeros = cut.window(m.zeros, m.rows * m.bits / 8, {0, groups},
                         {rows.begin * m.bits / 8, rows.end * m.bits / 8});
  out.scales = cut.chosen(m.scales, m.rows, all_of({0, groups}), all_of(rows));
  return out;
}

packed_matrix cut_rows(cutter& cut, const packed_matrix& m, index_range rows) {
  packed_matrix out = m;
  const std::int64_t groups = (m.columns + m.group - 1) / m.group;
  const std::int64_t width = (m.columns * m.bits + 31) / 32 * 4;
  out.rows = rows.size();
  out.codes = cut.window(m.codes, width, rows, {0, width});
  out.scales = cut.chosen(m.scales, groups, all_of(rows), all_of({0, groups}));
  if (m.zeros.empty()) return out;
  const std::int64_t per_word = 32 / m.bits;
  cut.check_units(rows, per_word, m.rows, "output",
                  "a word of " + std::to_string(per_word) + " zero points");
  out.zeros =
      cut.window(m.zeros, 4 * groups, {rows.begin / per_word, (rows.end + per_word - 1) / per_word},
                 {0, 4 * groups});
  return out;
}

scaled_matrix cut_rows(cutter& cut, const scaled_matrix& m, index_range rows) {
  scaled_matrix out = m;
  const std::int64_t across = (m.columns + m.block_columns - 1) / m.block_columns;
  const auto blocks = cutter::regroup(rows, m.block_rows);
  out.rows = rows.size();
  out.codes = cut.window(m.codes, m.columns, rows, {0, m.columns});
  out.block_rows = blocks.size;
  out.scales = cut.chosen(m.scales, across, blocks.sources, all_of({0, across}));
  return out;
}

block_matrix cut_columns(cutter& cut, const block_matrix& m, index_range columns) {
  const element_type_info& type = info(m.type);
  cut.check_units(
      columns, type.block_elements, m.columns, "input",
      "a " + std::string(type.name) + " block of " + std::to_string(type.block_elements));
  const bytes part = cut.window(m.bytes, bytes_of(m.type, m.columns), {0, m.rows},
                                {bytes_of(m.type, columns.begin), bytes_of(m.type, columns.end)});
  return {m.rows, columns.size(), m.type, part};
}

awq_matrix cut_columns(cutter& cut, const awq_matrix& m, index_range columns) {
  awq_matrix out = m;
  const auto groups = cut.regroup_inputs(columns, m.group, m.columns);
  out.columns = columns.size();
  out.group = groups.size;
  out.codes = cut.window(m.codes, m.rows / 2, columns, {0, m.rows / 2});
  out.scales = cut.chosen(m.scales, m.rows, groups.sources, all_of({0, m.rows}));
  if (m.zeros.empty()) return out;
  out.zeros = cut.chosen(m.zeros, 1, m.rows / 2, groups.sources, {0});
  return out;
}

gptq_matrix cut_columns(cutter& cut, const gptq_matrix& m, index_range columns) {
  const std::int64_t per_word = 32 / m.bits;
  cut.check_units(columns, per_word, m.columns, "input",
                  "a word of " + std::to_string(per_word) + " codes");
  gptq_matrix out = m;
  out.columns = columns.size();
  out.codes = cut.window(m.codes, 4 * m.rows, {columns.begin / per_word, columns.end / per_word},
                         {0, 4 * m.rows});
  if (is_ordered(m.groups, m.group, m.columns)) {
    const auto order = cut.reorder(m.groups, columns, m.columns / m.group);
    out.group = order.group;
    out.groups = order.groups;
    return out;
  }
  const auto groups = cut.regroup_inputs(columns, m.group, m.columns);
  const std::int64_t zero_bytes = m.rows * m.bits / 8;
  out.group = groups.size;
  out.groups = {};
  out.zeros = cut.chosen(m.zeros, 1, zero_bytes, groups.sources, {0});
  out.scales = cut.chosen(m.scales, m.rows, groups.sources, all_of({0, m.rows}));
  return out;
}

packed_matrix cut_columns(cutter& cut, const packed_matrix& m, index_range columns) {
  const std::int64_t per_word = 32 / m.bits;
  cut.check_units(columns, per_word, m.columns, "input",
                  "a word of " + std::to_string(per_word) + " codes");
  packed_matrix out = m;
  const std::int64_t count = (m.columns + m.group - 1) / m.group;
  out.columns = columns.size();
  out.codes =
      cut.window(m.codes, (m.columns + per_word - 1) / per_word * 4, {0, m.rows},
                 {columns.begin / per_word * 4, (columns.end + per_word - 1) / per_word * 4});
  if (is_ordered(m.groups, m.group, m.columns)) {
    const auto order = cut.reorder(m.groups, columns, count);
    out.group = order.group;
    out.groups = order.groups;
    return out;
  }
  const auto groups = cut.regroup_inputs(columns, m.group, m.columns);
  out.group = groups.size;
  out.groups = {};
  out.scales = cut.chosen(m.scales, count, all_of({0, m.rows}), groups.sources);
  if (m.zeros.empty()) return out;
  const index_range lines{0, (m.rows + per_word - 1) / per_word};
  out.zeros = cut.chosen(m.zeros, count, 4, all_of(lines), groups.sources);
  return out;
}

scaled_matrix cut_columns(cutter& cut, const scaled_matrix& m, index_range columns) {
  scaled_matrix out = m;
  const std::int64_t across = (m.columns + m.block_columns - 1) / m.block_columns;
  const std::int64_t down = (m.rows + m.block_rows - 1) / m.block_rows;
  const auto blocks = cut.regroup_inputs(columns, m.block_columns, m.columns);
  out.columns = columns.size();
  out.codes = cut.window(m.codes, m.columns, {0, m.rows}, columns);
  out.block_columns = blocks.size;
  out.scales = cut.chosen(m.scales, across, all_of({0, down}), blocks.sources);
  return out;
}

}  // namespace

weight_slice slice_rows(const weight_matrix& from, index_range rows, const std::string& name) {
  assert(rows.begin >= 0 && rows.begin < rows.end && rows.end <= rows_of(from));
  cutter cut(name);
  weight_matrix part =
      std::visit([&](const auto& m) { return weight_matrix{cut_rows(cut, m, rows)}; }, from);
  return {std::move(part), std::move(cut.copies)};
}

weight_slice slice_columns(const weight_matrix& from, index_range columns,
                           const std::string& name) {
  assert(columns.begin >= 0 && columns.begin < columns.end && columns.end <= columns_of(from));
  cutter cut(name);
  weight_matrix part =
      std::visit([&](const auto& m) { return weight_matrix{cut_columns(cut, m, columns)}; }, from);
  return {std::move(part), std::move(cut.copies)};
}

}  // namespace octavo::model
