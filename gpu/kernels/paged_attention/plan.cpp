// The planner: see plan.hpp.
#include "gpu/kernels/paged_attention/plan.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.hpp"

namespace octavo::gpu {
namespace {

/// Blocks that a multiprocessor holds at a time, by their shared memory.
constexpr int resident_blocks = 2;
/// Shorter pieces cost more in starting than they save.
constexpr int piece_tokens_min = 128;
/// What a piece's partial result may cost, of the bytes of its keys and values.
constexpr double split_cost_max = 0.03;

constexpr int head_dims[] = {16, 32, 64, 80, 96, 128, 256};

int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

int pages_of(const attention_item& item) {
  return divide_up(item.kv_end, kv_page_tokens) - item.kv_begin / kv_page_tokens;
}

int segments_of(const attention_item& item) {
  return divide_up(item.kv_end, segment_tokens) - item.kv_begin / segment_tokens;
}

[[noreturn]] void refuse(const std::string& field, long long given, const std::string& allowed) {
  throw input_error("paged attention: " + field + " is " + std::to_string(given) + "; allowed is " +
                    allowed);
}

/// Items of one kv head that give each multiprocessor so many blocks.
int items_that_give(const attention_shape& shape, int multiprocessors, int blocks) {
  return std::max(1, blocks * multiprocessors / shape.kv_heads);
}

/// Tokens from which on a piece of a tile of so many rows costs little to merge: its
/// fp32 outputs are written and read once, its keys and values are read once.
int cheap_piece_tokens(const attention_shape& shape, int rows) {
  const double partial = 2.0 * rows * (shape.head_dim + 2) * sizeof(float);
  const double token = 2.0 * shape.head_dim * static_cast<double>(bytes_of(shape.kv_type));
  return static_cast<int>(partial / token / split_cost_max) + 1;
}

}  // namespace

void check_shape(const attention_shape& shape) {
  if (shape.kv_heads < 1) refuse("kv_heads", shape.kv_heads, "at least 1");
  if (shape.heads < shape.kv_heads || shape.heads % shape.kv_heads != 0) {
    refuse("heads", shape.heads, "a multiple of kv_heads " + std::to_string(shape.kv_heads));
  }
  if (std::ranges::find(head_dims, shape.head_dim) == std::end(head_dims)) {
    refuse("head_dim", shape.head_dim, "16, 32, 64, 80, 96, 128 or 256");
  }
  if (shape.heads > 1 << 12) refuse("heads", shape.heads, "at most 4096");
  if (shape.window < 0) refuse("window", shape.window, "0 (none) or more");
  if (shape.type != dtype::float16 && shape.type != dtype::bfloat16) {
    throw input_error("paged attention: type is " + std::string(name_of(shape.type)) +
                      "; allowed is float16 or bfloat16");
  }
  if (shape.kv_type != shape.type && shape.kv_type != dtype::float8_e4m3) {
    throw input_error("paged attention: kv_type is " + std::string(name_of(shape.kv_type)) +
                      "; allowed is " + std::string(name_of(shape.type)) + " or float8_e4m3");
  }
}

bool uses_vector_kernel(const attention_shape& shape) {
  return !shape.batch_invariant && shape.group() < 4 &&
         (shape.head_dim == 64 || shape.head_dim == 128);
}

std::size_t plan_capacity::wide_offset() const {
  return static_cast<std::size_t>(narrow) * sizeof(attention_item);
}

std::size_t plan_capacity::merges_offset() const {
  return wide_offset() + static_cast<std::size_t>(wide) * sizeof(attention_item);
}

std::size_t plan_capacity::bytes() const {
  return merges_offset() + static_cast<std::size_t>(merges) * sizeof(merge_item);
}

std::size_t workspace_bytes(const attention_shape& shape, const plan_capacity& capacity) {
  const auto rows =
      static_cast<std::size_t>(capacity.partial_rows) * static_cast<std::size_t>(shape.kv_heads);
  return rows * static_cast<std::size_t>(shape.head_dim + 2) * sizeof(float);
}

attention_planner::attention_planner(const attention_shape& shape, const attention_limits& limits)
    : shape_(shape), limits_(limits) {
  check_shape(shape);
  const auto check_bound = [](int given, int most, const char* field) {
    if (given < 1 || given > most) refuse(field, given, "1 to " + std::to_string(most));
  };
  constexpr int packed_rows_max = 1 << 26;
  check_bound(limits.sequences_max, 1 << 20, "sequences_max");
  check_bound(limits.rows_max, packed_rows_max / shape.group(), "rows_max");
  check_bound(limits.multiprocessors, 1 << 12, "multiprocessors");
  const int cuts = items_that_give(shape, limits.multiprocessors, resident_blocks);
  const auto tiles_max = [&](int rows) {
    return divide_up(limits.rows_max * shape.group(), rows) + limits.sequences_max;
  };
  capacity_.narrow = cuts + (shape.batch_invariant ? tiles_max(narrow_rows) : limits.sequences_max);
  capacity_.wide = shape.batch_invariant ? 0 : cuts + tiles_max(wide_rows);
  // So many cuts make at most as many tiles of two pieces, of each kind.
  const int kinds = shape.batch_invariant ? 1 : 2;
  capacity_.merges = kinds * cuts;
  capacity_.partial_rows = 2 * cuts * (narrow_rows + (shape.batch_invariant ? 0 : wide_rows));
}

void attention_planner::check(std::span<const attention_sequence> sequences) const {
  if (sequences.size() > static_cast<std::size_t>(limits_.sequences_max)) {
    refuse("the number of sequences", static_cast<long long>(sequences.size()),
           "at most sequences_max " + std::to_string(limits_.sequences_max));
  }
  long long rows = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const attention_sequence& s = sequences[i];
    const std::string of = " of sequence " + std::to_string(i);
    if (s.rows < 1) refuse("rows" + of, s.rows, "at least 1");
    if (s.first_row < 0) refuse("first_row" + of, s.first_row, "0 or more");
    if (s.table < 0) refuse("table" + of, s.table, "0 or more");
    constexpr int positions_max = 1 << 30;
    if (s.first_position < 0 || s.first_position > positions_max) {
      refuse("first_position" + of, s.first_position, "0 to " + std::to_string(positions_max));
    }
    const int seen = shape_.window > 0 ? std::max(0, s.first_position - shape_.window + 1) : 0;
    if (s.first_block < 0 || s.first_block > seen / kv_page_tokens) {
      refuse("first_block" + of, s.first_block,
             "0 to " + std::to_string(seen / kv_page_tokens) + ", the block of the first key seen");
    }
    rows += s.rows;
  }
  if (rows > limits_.rows_max) {
    refuse("the number of rows", rows, "at most rows_max " + std::to_string(limits_.rows_max));
  }
}

void attention_planner::cut_into_tiles(const attention_sequence& s) {
  const int group = shape_.group();
  const int packed = s.rows * group;
  const bool narrow =
      shape_.batch_invariant || (uses_vector_kernel(shape_) ? s.rows == 1 : packed <= narrow_rows);
  const int rows = narrow ? narrow_rows : wide_rows;
  for (int first = 0; first < packed; first += rows) {
    attention_item item;
    item.first_row = s.first_row;
    item.first_position = s.first_position;
    item.first_packed = first;
    item.packed = std::min(rows, packed - first);
    const int oldest = s.first_position + first / group;
    const int newest = s.first_position + (first + item.packed - 1) / group;
    item.kv_begin = shape_.window > 0 ? std::max(0, oldest - shape_.window + 1) : 0;
    item.kv_end = newest + 1;
    item.table = s.table - s.first_block;
    (narrow ? narrow_tiles_ : wide_tiles_).push_back({item});
  }
}

// Pieces of one size for all tiles: the smallest that make no more cuts than fill the
// device, found by halving.
void attention_planner::choose_pieces(std::vector<tile>& tiles, int rows_of_tile) const {
  if (tiles.empty()) return;
  const int longest = pages_of(tiles.front().whole);
  const auto smallest_piece = [&](int items_max) {
    int low = piece_tokens_min / kv_page_tokens;
    int high = std::max(low, longest);
    while (low < high) {
      const int middle = low + (high - low) / 2;
      long long items = 0;
      for (const tile& t : tiles) items += divide_up(pages_of(t.whole), middle);
      if (items <= items_max) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  };
  const int cuts = items_that_give(shape_, limits_.multiprocessors, resident_blocks);
  const int filling = smallest_piece(static_cast<int>(tiles.size()) + cuts);
  // Pieces that merge cheaply, unless they leave multiprocessors without any.
  const int cheap = divide_up(cheap_piece_tokens(shape_, rows_of_tile), kv_page_tokens);
  const int one_each = smallest_piece(items_that_give(shape_, limits_.multiprocessors, 1));
  const int piece = std::max(filling, std::min(cheap, one_each));
  for (tile& t : tiles) t.pieces = divide_up(pages_of(t.whole), piece);
}

// Either one piece for each segment or one for all, which fold alike: those with most
// keys are cut first, as long as there is room.
void attention_planner::choose_segments(std::vector<tile>& tiles) {
  int items = capacity_.narrow - static_cast<int>(tiles.size());
  int merges = capacity_.merges;
  int rows = capacity_.partial_rows;
  for (tile& t : tiles) {
    const int segments = segments_of(t.whole);
    if (segments < 2 || merges == 0) continue;
    if (segments - 1 > items || static_cast<long long>(segments) * t.whole.packed > rows) continue;
    items -= segments - 1;
    rows -= segments * t.whole.packed;
    --merges;
    t.pieces = segments;
  }
}

void attention_planner::add_items(const tile& t, std::vector<attention_item>& items) {
  if (t.pieces == 1) {
    items.push_back(t.whole);
    return;
  }
  merge_item merge;
  merge.first_row = t.whole.first_row;
  merge.first_packed = t.whole.first_packed;
  merge.packed = t.whole.packed;
  merge.partial = partial_rows_;
  merge.splits = t.pieces;
  merges_.push_back(merge);
  const int first_page = t.whole.kv_begin / kv_page_tokens;
  const int pages = pages_of(t.whole);
  const int first_segment = t.whole.kv_begin / segment_tokens;
  const auto start_of = [&](int piece) {
    if (shape_.batch_invariant) return (first_segment + piece) * segment_tokens;
    const auto page = static_cast<long long>(pages) * piece / t.pieces;
    return (first_page + static_cast<int>(page)) * kv_page_tokens;
  };
  for (int piece = 0; piece < t.pieces; ++piece) {
    attention_item item = t.whole;
    item.kv_begin = std::max(t.whole.kv_begin, start_of(piece));
    item.kv_end = std::min(t.whole.kv_end, start_of(piece + 1));
    item.partial = partial_rows_;
    partial_rows_ += item.packed;
    items.push_back(item);
  }
}

plan_counts attention_planner::plan(std::span<const attention_sequence> sequences,
                                    std::span<std::byte> out) {
  check(sequences);
  if (out.size() < capacity_.bytes()) {
    refuse("the size of the plan", static_cast<long long>(out.size()),
           "at least " + std::to_string(capacity_.bytes()) + " bytes");
  }
  for (auto* list : {&narrow_tiles_, &wide_tiles_}) list->clear();
  for (auto* list : {&narrow_, &wide_}) list->clear();
  merges_.clear();
  partial_rows_ = 0;
  for (const attention_sequence& s : sequences) cut_into_tiles(s);
  const auto by_pages = [](const auto& a, const auto& b) {
    return pages_of(a.whole) > pages_of(b.whole);
  };
  for (auto* list : {&narrow_tiles_, &wide_tiles_}) std::ranges::stable_sort(*list, by_pages);
  if (shape_.batch_invariant) {
    choose_segments(narrow_tiles_);
  } else {
    choose_pieces(narrow_tiles_, std::min(narrow_rows, shape_.group()));
    choose_pieces(wide_tiles_, wide_rows);
  }
  for (const tile& t : narrow_tiles_) add_items(t, narrow_);
  for (const tile& t : wide_tiles_) add_items(t, wide_);

  std::memset(out.data(), 0, capacity_.bytes());
  const auto write = [&](const auto& entries, std::size_t offset) {
    if (entries.empty()) return;
    std::memcpy(out.data() + offset, entries.data(), entries.size() * sizeof(entries[0]));
  };
  write(narrow_, 0);
  write(wide_, capacity_.wide_offset());
  write(merges_, capacity_.merges_offset());
  return {static_cast<int>(narrow_.size()), static_cast<int>(wide_.size()),
          static_cast<int>(merges_.size())};
}

}  // namespace octavo::gpu
