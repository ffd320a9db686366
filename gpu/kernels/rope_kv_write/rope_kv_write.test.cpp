// RoPE, norms of heads and the KV write against the same in double.
#include "gpu/kernels/rope_kv_write/rope_kv_write.hpp"

#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "gpu/kernels/paged_attention/test_tensors.hpp"
#include "gpu/simt/schedules.hpp"
#include "model/rope_angles.hpp"
#include "tests/support/catch.hpp"
#if !defined(OCTAVO_NATIVE_CUDA)
#include "gpu/kernels/rope_kv_write/rope_kv_write.cuh"
#endif

using namespace octavo;
using namespace octavo::gpu;

namespace {

struct rope_case {
  dtype type = dtype::bfloat16;
  dtype kv_type = dtype::bfloat16;
  int heads = 6;
  int kv_heads = 2;
  int head_dim = 64;
  int pairs = 32;
  rope_style style = rope_style::halves;
  bool norm = false;
  bool tables = false;
  /// Rows: sequence and position; below 0 for a row of no sequence.
  std::vector<std::pair<int, int>> rows = {{0, 0}, {-1, 5}, {1, 15}, {1, 16}, {0, 1}, {2, 77}};
};

std::vector<double> frequencies_of(int pairs) {
  std::vector<double> frequencies;
  for (int i = 0; i < pairs; ++i)
    frequencies.push_back(std::pow(10'000.0, -static_cast<double>(i) / pairs));
  return frequencies;
}

/// One run of a case, from host tensors to host tensors.
class rope_test {
 public:
  static constexpr int blocks = 8;  // of each sequence's table
  static constexpr float magnitude = 1.25F;
  static constexpr float epsilon = 1e-5F;

  explicit rope_test(const rope_case& c)
      : c_(c),
        width_(static_cast<std::size_t>((c.heads + 2 * c.kv_heads) * c.head_dim)),
        packed_(c.type, c.rows.size() * width_),
        out_(c.type, c.rows.size() * width_),
        key_pages_(c.kv_type, pool_elements()),
        value_pages_(c.kv_type, pool_elements()),
        norms_(dtype::float32, static_cast<std::size_t>(2 * c.head_dim)) {
    std::mt19937 random(5);
    packed_.fill(random, 4);
    norms_.fill(random, 2);
    tables_.resize(3 * blocks);
    std::iota(tables_.begin(), tables_.end(), 0);
    std::shuffle(tables_.begin(), tables_.end(), random);
    if (c.kv_type == dtype::float8_e4m3) {
      key_scale_ = 0.25F;
      value_scale_ = 0.5F;
    }
  }

  void set_scales(float scale) { key_scale_ = value_scale_ = scale; }

  template <class Launch>
  void run(Launch&& launch_run) {
    stream s;
    const auto packed = packed_.upload(s);
    auto out = out_.upload(s);
    auto key_pages = key_pages_.upload(s);
    auto value_pages = value_pages_.upload(s);
    const auto norms = norms_.upload(s);
    upload_rows(s);
    rope_kv_write_run run = shape();
    const std::size_t element = bytes_of(c_.type);
    run.queries = packed.data();
    run.keys = packed.data() + static_cast<std::size_t>(c_.heads * c_.head_dim) * element;
    run.values =
        packed.data() + static_cast<std::size_t>((c_.heads + c_.kv_heads) * c_.head_dim) * element;
    run.queries_out = out.data();
    run.key_pages = key_pages.data();
    run.value_pages = value_pages.data();
    if (c_.norm) {
      run.query_norm = reinterpret_cast<const float*>(norms.data());
      run.key_norm = run.query_norm + c_.head_dim;
    }
    launch_run(run, s);
    out_.download(s, out);
    key_pages_.download(s, key_pages);
    value_pages_.download(s, value_pages);
  }

  void run() {
    run([](const rope_kv_write_run& r, stream& s) { rope_kv_write(r, s); });
  }

  /// The largest error, in roundings of the type it is stored as; NaN counts as 1e30.
  double worst_error() const {
    double worst = 0;
    for (std::size_t row = 0; row < c_.rows.size(); ++row) {
      for (int head = 0; head < c_.heads + 2 * c_.kv_heads; ++head) {
        worst = std::max(worst, head_error(row, head));
      }
    }
    return worst;
  }

  /// How many elements of pages were written.
  std::size_t written() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < key_pages_.size(); ++i) {
      n += std::isnan(key_pages_.at(i)) ? 0 : 1;
      n += std::isnan(value_pages_.at(i)) ? 0 : 1;
    }
    return n;
  }

  double query(std::size_t row, int element) const {
    return out_.at(row * width_ + static_cast<std::size_t>(element));
  }
  double key(std::size_t row, int element) const {
    return key_pages_.at(page_offset(row, 0) + static_cast<std::size_t>(element));
  }
  test_tensor& packed() { return packed_; }

  rope_kv_write_run shape() const {
    rope_kv_write_run run;
    run.type = c_.type;
    run.kv_type = c_.kv_type;
    run.rows = static_cast<int>(c_.rows.size());
    run.heads = c_.heads;
    run.kv_heads = c_.kv_heads;
    run.head_dim = c_.head_dim;
    run.query_stride = run.key_stride = run.value_stride = static_cast<std::int64_t>(width_);
    run.queries_out_stride = static_cast<std::int64_t>(width_);
    run.norm_epsilon = epsilon;
    run.key_scale = key_scale_;
    run.value_scale = value_scale_;
    run.positions = integers_.data();
    run.sequence_of_row = integers_.data() + c_.rows.size();
    run.sequence_tables = integers_.data() + 2 * c_.rows.size();
    run.tables = run.sequence_tables + 3;
    run.rope.pairs = c_.pairs;
    run.rope.style = c_.style;
    run.rope.magnitude = magnitude;
    run.rope.turns = turns_.data();
    if (c_.tables) {
      run.rope.turns = nullptr;
      run.rope.cosines = angles_.data();
      run.rope.sines = angles_.data() + angles_.size() / 2;
      run.rope.table_positions = table_positions();
    }
    return run;
  }

 private:
  std::size_t pool_elements() const {
    return static_cast<std::size_t>(3 * blocks * kv_page_tokens * c_.kv_heads * c_.head_dim);
  }
  int table_positions() const {
    int most = 0;
    for (const auto& [sequence, position] : c_.rows) most = std::max(most, position);
    return most + 1;
  }

  // Table entries of sequence s are blocks * s on; sequence 2 has lost its first 3 blocks.
  int first_block(int sequence) const { return sequence == 2 ? 3 : 0; }

  void upload_rows(stream& s) {
    std::vector<std::int32_t> integers;
    for (const auto& row : c_.rows) integers.push_back(row.second);
    for (const auto& row : c_.rows) integers.push_back(row.first);
    for (int i = 0; i < 3; ++i) integers.push_back(blocks * i - first_block(i));
    integers.insert(integers.end(), tables_.begin(), tables_.end());
    integers_ = device_array<std::int32_t>(integers.size());
    integers_.upload(s, integers);
    const auto turns = rope_turns(frequencies_of(c_.pairs));
    turns_ = device_array<std::uint64_t>(turns.size());
    turns_.upload(s, turns);
    if (!c_.tables) return;
    std::vector<float> cosines, sines;
    for (int position = 0; position < table_positions(); ++position) {
      for (const double f : frequencies_of(c_.pairs)) {
        cosines.push_back(magnitude * static_cast<float>(std::cos(position * f)));
        sines.push_back(magnitude * static_cast<float>(std::sin(position * f)));
      }
    }
    cosines.insert(cosines.end(), sines.begin(), sines.end());
    angles_ = device_array<float>(cosines.size());
    angles_.upload(s, cosines);
  }

  std::size_t page_offset(std::size_t row, int kv_head) const {
    const auto [sequence, position] = c_.rows[row];
    const int block = position / kv_page_tokens - first_block(sequence);
    const int page = tables_[static_cast<std::size_t>(blocks * sequence + block)];
    return static_cast<std::size_t>(
        ((page * c_.kv_heads + kv_head) * kv_page_tokens + position % kv_page_tokens) *
        c_.head_dim);
  }

  std::vector<double> expected(std::size_t row, int head) const {
    const auto dim = static_cast<std::size_t>(c_.head_dim);
    std::vector<double> x(dim);
    for (std::size_t i = 0; i < dim; ++i) {
      x[i] = packed_.at(row * width_ + static_cast<std::size_t>(head) * dim + i);
    }
    if (head >= c_.heads + c_.kv_heads) return x;
    if (c_.norm) {
      double squares = 0;
      for (const double v : x) squares += v * v;
      const double factor = 1 / std::sqrt(squares / c_.head_dim + static_cast<double>(epsilon));
      for (std::size_t i = 0; i < dim; ++i)
        x[i] *= factor * norms_.at(head < c_.heads ? i : dim + i);
    }
    const auto frequencies = frequencies_of(c_.pairs);
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const bool halves = c_.style == rope_style::halves;
      double& a = x[halves ? i : 2 * i];
      double& b = x[halves ? i + frequencies.size() : 2 * i + 1];
      const double angle = c_.rows[row].second * frequencies[i];
      const double cosine = magnitude * std::cos(angle);
      const double sine = magnitude * std::sin(angle);
      const double turned = a * cosine - b * sine;
      b = b * cosine + a * sine;
      a = turned;
    }
    return x;
  }

  double head_error(std::size_t row, int head) const {
    const bool is_query = head < c_.heads;
    if (!is_query && c_.rows[row].first < 0) return 0;
    const bool is_key = !is_query && head < c_.heads + c_.kv_heads;
    const dtype type = is_query ? c_.type : c_.kv_type;
    const double epsilon_of_type = type == dtype::float16    ? 0x1p-11
                                   : type == dtype::bfloat16 ? 0x1p-8
                                                             : 0x1p-4;
    const auto right = expected(row, head);
    double worst = 0;
    for (std::size_t i = 0; i < right.size(); ++i) {
      double got = 0;
      if (is_query) {
        got = query(row, head * c_.head_dim + static_cast<int>(i));
      } else {
        const std::size_t at = page_offset(row, (head - c_.heads) % c_.kv_heads) + i;
        got = is_key ? key_pages_.at(at) * static_cast<double>(key_scale_)
                     : value_pages_.at(at) * static_cast<double>(value_scale_);
      }
      // fp32 arithmetic may cost a little where two numbers cancel.
      const double allowed = epsilon_of_type * (std::abs(right[i]) + 0.02);
      const double error = std::abs(got - right[i]) / allowed;
      worst = std::max(worst, std::isnan(error) ? 1e30 : error);
    }
    return worst;
  }

  rope_case c_;
  std::size_t width_;
  test_tensor packed_, out_, key_pages_, value_pages_, norms_;
  std::vector<std::int32_t> tables_;
  float key_scale_ = 1;
  float value_scale_ = 1;
  device_array<std::int32_t> integers_;
  device_array<std::uint64_t> turns_;
  device_array<float> angles_;
};

/// Elements that 5 rows of a case write.
std::size_t elements_of_rows(const rope_case& c) {
  return static_cast<std::size_t>(5 * 2 * c.kv_heads * c.head_dim);
}

void check_case(const rope_case& c) {
  rope_test test(c);
  test.run();
  CHECK(test.worst_error() <= 1.01);
  CHECK(test.written() == elements_of_rows(c));
}

}  // namespace

TEST_CASE("queries turn and keys and values reach their pages, under every schedule") {
  simt::for_each_schedule([](const char* name) {
    for (const rope_style style : {rope_style::halves, rope_style::neighbours}) {
      CAPTURE(name, style == rope_style::halves);
      rope_case c;
      c.style = style;
      c.norm = true;
      check_case(c);
    }
  });
}

TEST_CASE("every type and head size, whole or in part, normed or not") {
  for (const int head_dim : {16, 32, 64, 80, 96, 128, 256}) {
    for (const dtype type : {dtype::float16, dtype::bfloat16}) {
      for (const bool fp8 : {false, true}) {
        for (const int pairs : {head_dim / 2, head_dim / 8, 0}) {
          for (const bool norm : {false, true}) {
            CAPTURE(head_dim, name_of(type), fp8, pairs, norm);
            rope_case c;
            c.type = type;
            c.kv_type = fp8 ? dtype::float8_e4m3 : type;
            c.head_dim = head_dim;
            c.pairs = pairs;
            c.norm = norm;
            c.style = pairs % 2 == 0 ? rope_style::halves : rope_style::neighbours;
            check_case(c);
          }
        }
      }
    }
  }
}

TEST_CASE("angles from tables equal those from frequencies") {
  for (const rope_style style : {rope_style::halves, rope_style::neighbours}) {
    rope_case c;
    c.type = c.kv_type = dtype::float16;
    c.tables = true;
    c.style = style;
    check_case(c);
  }
}

TEST_CASE("angles are the CPU executor's, also at position 1,000,003") {
  rope_case c;
  c.type = c.kv_type = dtype::float16;
  c.rows = {{-1, 1'000'003}};
  rope_test test(c);
  // Ones in the first half and zeros in the second: cosines and sines come out.
  for (int i = 0; i < 64; ++i) test.packed().set(static_cast<std::size_t>(i), i < 32 ? 1.0F : 0.0F);
  test.run();
  model::model_config config;
  config.head_dim = 64;
  config.rope.theta = 10'000;
  std::vector<float> cosines(32), sines(32);
  model::rope_angles(config, false).at(1'000'003, cosines, sines);
  for (std::size_t i = 0; i < 32; ++i) {
    const auto cosine = static_cast<double>(cosines[i] * rope_test::magnitude);
    const auto sine = static_cast<double>(sines[i] * rope_test::magnitude);
    CHECK(std::abs(test.query(0, static_cast<int>(i)) - cosine) <= 0x1p-10);
    CHECK(std::abs(test.query(0, static_cast<int>(i) + 32) - sine) <= 0x1p-10);
  }
}

TEST_CASE("e4m3 pages hold the largest number where a value is too large") {
  rope_case c;
  c.kv_type = dtype::float8_e4m3;
  c.pairs = 0;
  rope_test test(c);
  test.set_scales(0.001F);
  test.run();
  double largest = 0;
  for (int i = 0; i < c.head_dim; ++i) largest = std::max(largest, std::abs(test.key(0, i)));
  CHECK(largest == 448);
}

#if !defined(OCTAVO_NATIVE_CUDA)
namespace {

/// Schedules under which a fault shows.
template <rope_bug bug>
int schedules_that_find() {
  int found = 0;
  simt::for_each_schedule([&](const char*) {
    rope_test test({});
    test.run([](const rope_kv_write_run& run, stream& s) {
      launch(s, rope_launch_shape(run), rope_and_write<__nv_bfloat16, __nv_bfloat16, bug>, run);
    });
    if (!(test.worst_error() <= 1.01)) ++found;
  });
  return found;
}

}  // namespace

TEST_CASE("faults seeded into the kernel are found") {
  CHECK(schedules_that_find<rope_bug::none>() == 0);
  CHECK(schedules_that_find<rope_bug::page_off_by_one>() == 8);
  CHECK(schedules_that_find<rope_bug::turn_without_barrier>() > 0);
}
#endif

TEST_CASE("a step that cannot be run is refused by name") {
  rope_test test({});
  const auto refused = [&](auto change) {
    std::string message = "nothing";
    try {
      test.run([&](rope_kv_write_run run, stream& on) {
        change(run);
        on.synchronize();
        rope_kv_write(run, on);
      });
    } catch (const input_error& e) {
      message = e.what();
    }
    return message;
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refused([](auto& r) { r.head_dim = 24; }), ContainsSubstring("head_dim is 24"));
  CHECK_THAT(refused([](auto& r) { r.rope.pairs = 33; }), ContainsSubstring("rope.pairs is 33"));
  CHECK_THAT(refused([](auto& r) { r.key_stride = 12; }), ContainsSubstring("keys' stride is 12"));
  CHECK_THAT(refused([](auto& r) { r.positions = nullptr; }),
             ContainsSubstring("positions is null"));
  CHECK_THAT(refused([](auto& r) { r.type = dtype::float32; }),
             ContainsSubstring("type is float32"));
  CHECK_THAT(refused([](auto& r) { r.value_scale = 0; }), ContainsSubstring("value_scale"));
  CHECK_THROWS_WITH(rope_turns(std::vector<double>{7.0}), ContainsSubstring("frequency is 7"));
}
