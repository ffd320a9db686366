// A step of attention for tests: sequences in pages of a pool in no order, queries,
// and the expected outputs in double by the definition of attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpu/kernels/paged_attention/paged_attention.hpp"
#include "gpu/kernels/paged_attention/test_tensors.hpp"

namespace octavo::gpu {

/// A sequence of a test: `rows` tokens after `context` earlier ones.
struct test_sequence {
  int context = 0;
  int rows = 1;
  /// Its first blocks are those of the sequence before it.
  int shared_blocks = 0;
};

struct test_options {
  float soft_cap = 0;
  int multiprocessors = 4;
  /// Launch as a captured graph does: as many items as a plan can have.
  bool full_grid = false;
  /// Rows before and after each sequence that belong to none.
  int gap_rows = 0;
  unsigned seed = 1;
  /// Where keys and values are e4m3.
  float key_scale = 0.5F;
  float value_scale = 2;
};

class test_batch {
 public:
  test_batch(const attention_shape& shape, const std::vector<test_sequence>& sequences,
             const test_options& options = {})
      : shape_(shape),
        options_(options),
        random_(options.seed),
        row_width_(static_cast<std::size_t>(shape.heads * shape.head_dim) + 8),
        queries_(shape.type, 0),
        keys_(shape.kv_type, 0),
        values_(shape.kv_type, 0) {
    if (shape.kv_type != dtype::float8_e4m3) options_.key_scale = options_.value_scale = 1;
    int row = 0;
    for (const test_sequence& s : sequences) {
      row += options.gap_rows;
      add_sequence(s, row);
      row += s.rows;
    }
    rows_ = row + options.gap_rows;
    fill_pool();
    queries_ = test_tensor(shape.type, static_cast<std::size_t>(rows_) * row_width_);
    queries_.fill(random_, 3);
  }

  const std::vector<attention_sequence>& sequences() const { return sequences_; }
  int rows() const { return rows_; }
  const test_options& options() const { return options_; }

  /// The last rows of the first sequence alone: same pages, same queries.
  test_batch only_last_rows(int rows) const {
    test_batch part = *this;
    attention_sequence s = sequences_.front();
    const int skipped = s.rows - rows;
    s.first_row += skipped;
    s.first_position += skipped;
    s.rows = rows;
    const int first_block = oldest_seen(s.first_position) / kv_page_tokens;
    s.table += first_block - s.first_block;
    s.first_block = first_block;
    part.sequences_ = {s};
    return part;
  }
  void set_multiprocessors(int n) { options_.multiprocessors = n; }

  attention_planner planner() const {
    attention_limits limits;
    limits.sequences_max = static_cast<int>(sequences_.size());
    limits.rows_max = rows_;
    limits.multiprocessors = options_.multiprocessors;
    return {shape_, limits};
  }

  /// Everything on the device, and a run that uses it.
  struct on_device {
    device_array<std::byte> plan, tables, queries, keys, values, out, workspace;
    paged_attention_run run;
  };

  on_device upload(stream& s) const {
    on_device d;
    attention_planner planner = this->planner();
    std::vector<std::byte> plan(planner.capacity().bytes());
    d.run.launch = planner.plan(sequences_, plan);
    if (options_.full_grid) d.run.launch = planner.capacity();
    d.run.shape = shape_;
    d.run.capacity = planner.capacity();
    d.plan = device_array<std::byte>(plan.size());
    d.plan.upload(s, plan);
    d.tables = device_array<std::byte>(tables_.size() * 4);
    d.tables.upload(s, std::as_bytes(std::span(tables_)));
    d.queries = queries_.upload(s);
    d.keys = keys_.upload(s);
    d.values = values_.upload(s);
    d.out = test_tensor(shape_.type, queries_.size()).upload(s);
    d.workspace = device_array<std::byte>(
        std::max<std::size_t>(16, workspace_bytes(shape_, planner.capacity())));
    d.run.plan = d.plan.data();
    d.run.tables = reinterpret_cast<const std::int32_t*>(d.tables.data());
    d.run.queries = d.queries.data();
    d.run.keys = d.keys.data();
    d.run.values = d.values.data();
    d.run.out = d.out.data();
    d.run.workspace = d.workspace.data();
    d.run.query_stride = d.run.out_stride = static_cast<std::int64_t>(row_width_);
    d.run.scale = scale();
    d.run.soft_cap = options_.soft_cap;
    d.run.key_scale = options_.key_scale;
    d.run.value_scale = options_.value_scale;
    return d;
  }

  test_tensor download(stream& s, const on_device& d) const {
    test_tensor out(shape_.type, queries_.size());
    out.download(s, d.out);
    return out;
  }

  test_tensor run() const {
    stream s;
    const on_device d = upload(s);
    paged_attention(d.run, s);
    return download(s, d);
  }

  /// The largest error of an output, in units of what rounding weights and outputs to
  /// the type may cost: epsilon times the weighted mean of |value|. NaN counts as 1e30.
  double worst_error(const test_tensor& out) const {
    const double epsilon = shape_.type == dtype::float16 ? 0x1p-11 : 0x1p-8;
    double worst = 0;
    for (const attention_sequence& s : sequences_) {
      for (int i = 0; i < s.rows; ++i) {
        for (int head = 0; head < shape_.heads; ++head) {
          worst = std::max(worst, head_error(out, s, i, head) / epsilon);
        }
      }
    }
    return worst;
  }

  /// Rows of no sequence, which no kernel may touch, are still NaN.
  bool others_untouched(const test_tensor& out) const {
    std::vector<bool> used(static_cast<std::size_t>(rows_), false);
    for (const attention_sequence& s : sequences_) {
      for (int i = 0; i < s.rows; ++i) used[static_cast<std::size_t>(s.first_row + i)] = true;
    }
    const std::size_t width = row_width_ - 8;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool written = used[i / row_width_] && i % row_width_ < width;
      if (!written && !std::isnan(out.at(i))) return false;
    }
    return true;
  }

  /// The stored bytes of a row's outputs.
  std::vector<std::byte> row_bytes(const test_tensor& out, int row) const {
    const std::size_t bytes = row_width_ * 2;
    const auto from = out.bytes().subspan(static_cast<std::size_t>(row) * bytes, bytes - 16);
    return {from.begin(), from.end()};
  }

  /// The fewest bytes that the step can move: keys and values that are seen, queries,
  /// outputs, and the tables' entries, once each.
  double bytes_least() const {
    double bytes = 0;
    for (const attention_sequence& s : sequences_) {
      const int begin = oldest_seen(s.first_position);
      const double keys = s.first_position + s.rows - begin;
      const double per_key =
          2.0 * shape_.kv_heads * shape_.head_dim * static_cast<double>(bytes_of(shape_.kv_type));
      bytes += keys * per_key + 2.0 * s.rows * shape_.heads * shape_.head_dim * 2;
      bytes += std::ceil(keys / kv_page_tokens) * 4;
    }
    return bytes;
  }

 private:
  float scale() const { return 1 / std::sqrt(static_cast<float>(shape_.head_dim)); }

  int oldest_seen(int position) const {
    return shape_.window > 0 ? std::max(0, position - shape_.window + 1) : 0;
  }

  void add_sequence(const test_sequence& s, int first_row) {
    attention_sequence to;
    to.first_row = first_row;
    to.rows = s.rows;
    to.first_position = s.context;
    to.table = static_cast<int>(tables_.size());
    to.first_block = oldest_seen(s.context) / kv_page_tokens;
    const int blocks = (s.context + s.rows + kv_page_tokens - 1) / kv_page_tokens;
    for (int block = to.first_block; block < blocks; ++block) {
      const bool shared = block < s.shared_blocks;
      tables_.push_back(
          shared ? tables_[static_cast<std::size_t>(page_entry(sequences_.back(), block))]
                 : pages_++);
    }
    sequences_.push_back(to);
  }

  static int page_entry(const attention_sequence& s, int block) {
    return s.table + block - s.first_block;
  }

  // Pages get ids in no order, and only tokens that a sequence has are numbers.
  void fill_pool() {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(pages_) + 2);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random_);
    for (std::int32_t& page : tables_) page = ids[static_cast<std::size_t>(page)];
    const std::size_t elements =
        ids.size() * static_cast<std::size_t>(shape_.kv_heads * kv_page_tokens * shape_.head_dim);
    keys_ = test_tensor(shape_.kv_type, elements);
    values_ = test_tensor(shape_.kv_type, elements);
    std::uniform_real_distribution<float> numbers(-1, 1);
    for (const attention_sequence& s : sequences_) {
      for (int at = s.first_block * kv_page_tokens; at < s.first_position + s.rows; ++at) {
        for (int head = 0; head < shape_.kv_heads; ++head) {
          const std::size_t first = kv_offset(s, at, head);
          if (!std::isnan(keys_.at(first))) continue;  // shared, and filled already
          for (int i = 0; i < shape_.head_dim; ++i) {
            keys_.set(first + static_cast<std::size_t>(i), 2 * numbers(random_));
            values_.set(first + static_cast<std::size_t>(i), numbers(random_));
          }
        }
      }
    }
  }

  std::size_t kv_offset(const attention_sequence& s, int position, int kv_head) const {
    const int page = tables_[static_cast<std::size_t>(page_entry(s, position / kv_page_tokens))];
    const auto row = static_cast<std::size_t>(page * shape_.kv_heads + kv_head) * kv_page_tokens +
                     static_cast<std::size_t>(position % kv_page_tokens);
    return row * static_cast<std::size_t>(shape_.head_dim);
  }

  std::size_t query_offset(const attention_sequence& s, int row, int head) const {
    return static_cast<std::size_t>(s.first_row + row) * row_width_ +
           static_cast<std::size_t>(head * shape_.head_dim);
  }

  double score(const attention_sequence& s, int row, int head, int position) const {
    const std::size_t q = query_offset(s, row, head);
    const std::size_t k = kv_offset(s, position, head / shape_.group());
    double sum = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.head_dim); ++i) {
      sum += queries_.at(q + i) * keys_.at(k + i) * static_cast<double>(options_.key_scale);
    }
    sum *= static_cast<double>(scale());
    const auto cap = static_cast<double>(options_.soft_cap);
    return cap > 0 ? cap * std::tanh(sum / cap) : sum;
  }

  double head_error(const test_tensor& out, const attention_sequence& s, int row, int head) const {
    const int position = s.first_position + row;
    const int begin = oldest_seen(position);
    std::vector<double> weights;
    for (int at = begin; at <= position; ++at) weights.push_back(score(s, row, head, at));
    const double top = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& w : weights) sum += w = std::exp(w - top);
    double worst = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.head_dim); ++i) {
      double expected = 0;
      double magnitude = 0;
      for (int at = begin; at <= position; ++at) {
        const double v = values_.at(kv_offset(s, at, head / shape_.group()) + i) *
                         static_cast<double>(options_.value_scale);
        const double w = weights[static_cast<std::size_t>(at - begin)] / sum;
        expected += w * v;
        magnitude += w * std::abs(v);
      }
      const double error = std::abs(out.at(query_offset(s, row, head) + i) - expected);
      worst = std::max(worst, std::isnan(error) ? 1e30 : error / magnitude);
    }
    return worst;
  }

  attention_shape shape_;
  test_options options_;
  std::mt19937 random_;
  std::size_t row_width_;
  std::vector<attention_sequence> sequences_;
  std::vector<std::int32_t> tables_;
  std::int32_t pages_ = 0;
  int rows_ = 0;
  test_tensor queries_, keys_, values_;
};

}  // namespace octavo::gpu
