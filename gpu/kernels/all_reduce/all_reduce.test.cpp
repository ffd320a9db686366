// Sums over ranks, each a thread and a stream, against float64: all shapes, types and
// both algorithms, call after call; and that all ranks get the same bits.
#include "gpu/kernels/all_reduce/all_reduce.hpp"

#include <atomic>
#include <cstring>
#include <thread>

#include "core/error.hpp"
#include "gpu/kernels/all_reduce/test_ranks.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/kernels/rms_norm/rms_norm_reference.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

constexpr float epsilon = 1e-5F;

struct reduce_case {
  int ranks;
  int rows;
  int width;
  bool input_weight = false;
};

/// The ranks' inputs, and what should come of them.
template <class X>
struct reduction {
  std::vector<std::vector<X>> inputs;
  std::vector<float> residual;
  std::vector<float> weight;
  std::vector<float> input_weight;
  std::vector<double> sums;       // of inputs, in float32 by rank, rounded to X
  std::vector<double> residuals;  // after
  std::vector<double> normed;

  explicit reduction(const reduce_case& c) {
    const auto width = static_cast<std::size_t>(c.width);
    const auto n = static_cast<std::size_t>(c.rows) * width;
    for (int r = 0; r < c.ranks; ++r) {
      inputs.push_back(random_rows<X>(n, static_cast<unsigned>(r + 1)));
    }
    residual = random_rows<float>(n, 11, 2);
    weight = random_rows<float>(width, 12);
    input_weight = random_rows<float>(width, 13);
    for (std::size_t i = 0; i < n; ++i) {
      float sum = static_cast<float>(inputs[0][i]);
      for (std::size_t r = 1; r < inputs.size(); ++r) sum += static_cast<float>(inputs[r][i]);
      sums.push_back(static_cast<float>(static_cast<X>(sum)));
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(c.rows); ++row) {
      norm(row * width, width, c.input_weight);
    }
  }

 private:
  void norm(std::size_t at, std::size_t width, bool with_input_weight) {
    std::vector<double> x(sums.begin() + static_cast<std::ptrdiff_t>(at),
                          sums.begin() + static_cast<std::ptrdiff_t>(at + width));
    if (with_input_weight) {
      x = rms_norm_reference(x, std::vector<double>(input_weight.begin(), input_weight.end()),
                             epsilon);
    }
    for (std::size_t i = 0; i < width; ++i) x[i] += residual[at + i];
    residuals.insert(residuals.end(), x.begin(), x.end());
    x = rms_norm_reference(x, std::vector<double>(weight.begin(), weight.end()), epsilon);
    normed.insert(normed.end(), x.begin(), x.end());
  }
};

/// What one rank got.
template <class X, class T>
struct rank_results {
  std::vector<X> sums;
  std::vector<T> rounded;
  std::vector<float> residuals;
  std::vector<T> normed;
};

template <class X, class T>
rank_results<X, T> run_rank(const peer_group& g, const reduce_case& c, const reduction<X>& of,
                            all_reduce_algorithm algorithm) {
  stream s;
  auto input = on_device(s, of.inputs[static_cast<std::size_t>(g.rank)]);
  auto residual = on_device(s, of.residual);
  auto weight = on_device(s, of.weight);
  auto input_weight = on_device(s, of.input_weight);
  device_array<X> sums(input.size());
  device_array<T> rounded(input.size());
  device_array<T> normed(input.size());
  all_reduce_params p;
  p.algorithm = algorithm;
  p.type = dtype_of<X>;
  p.rows = c.rows;
  p.width = c.width;
  p.input = input.data();
  p.output = sums.data();
  p.output_type = dtype_of<X>;
  all_reduce(g, p, s);
  p.output_type = dtype_of<T>;
  p.output = rounded.data();
  all_reduce(g, p, s);
  p.residual = residual.data();
  p.epsilon = epsilon;
  p.input_weight = c.input_weight ? input_weight.data() : nullptr;
  p.weight = weight.data();
  p.output = normed.data();
  all_reduce(g, p, s);
  return {on_host(s, sums), on_host(s, rounded), on_host(s, residual), on_host(s, normed)};
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class X, class T>
void check(const reduce_case& c) {
  const reduction<X> of(c);
  const auto ranks = static_cast<std::size_t>(c.ranks);
  simt::for_each_schedule([&](const char* name) {
    INFO(name << ", ranks " << c.ranks << ", " << c.rows << " x " << c.width);
    const test_ranks peers(c.ranks, 2, of.sums.size() * sizeof(X));
    std::vector<rank_results<X, T>> results(2 * ranks);
    for (const bool two_shot : {false, true}) {
      peers.run([&](const peer_group& g) {
        const auto at = static_cast<std::size_t>(g.rank) + (two_shot ? ranks : 0);
        results[at] = run_rank<X, T>(
            g, c, of, two_shot ? all_reduce_algorithm::two_shot : all_reduce_algorithm::one_shot);
      });
    }
    CHECK(worst_error(results[0].sums, of.sums, 1e-30) == 0);
    CHECK(worst_error(results[0].rounded, of.sums, 1e-5) < 1.01 * rounding_of<T>);
    CHECK(worst_error(results[0].residuals, of.residuals, 1) < 1e-6);
    CHECK(worst_error(results[0].normed, of.normed, 1e-3) < 1.01 * rounding_of<T>);
    for (const auto& r : results) {
      CHECK(same_bits(r.sums, results[0].sums));
      CHECK(same_bits(r.rounded, results[0].rounded));
      CHECK(same_bits(r.residuals, results[0].residuals));
      CHECK(same_bits(r.normed, results[0].normed));
    }
  });
}

}  // namespace

TEST_CASE("all ranks get the same sums, which agree with float64") {
  check<__half, __half>({1, 2, 64});
  check<__half, __half>({2, 1, 77, true});
  check<__nv_bfloat16, __nv_bfloat16>({4, 5, 132, true});
  check<float, __nv_bfloat16>({3, 7, 64});
  check<float, __half>({8, 3, 33, true});
}

TEST_CASE("calls of different shapes may follow each other without a wait") {
  // Of as many blocks as rows, 3 at most: blocks that sit out must keep count.
  const std::vector<reduce_case> calls{{2, 5, 64}, {2, 1, 16}, {2, 9, 64},
                                       {2, 2, 8},  {2, 1, 64}, {2, 9, 33}};
  std::vector<reduction<__half>> of;
  for (const auto& c : calls) of.emplace_back(c);
  simt::for_each_schedule([&](const char* name) {
    INFO(name);
    const test_ranks peers(2, 3, 9 * 64 * sizeof(__half));
    std::vector<std::vector<__half>> sums(2 * calls.size());
    peers.run([&](const peer_group& g) {
      stream s;
      std::vector<device_array<__half>> outputs;
      std::vector<device_array<__half>> inputs;
      for (std::size_t i = 0; i < calls.size(); ++i) {
        inputs.push_back(on_device(s, of[i].inputs[static_cast<std::size_t>(g.rank)]));
        outputs.emplace_back(inputs.back().size());
        all_reduce_params p;
        p.algorithm = i % 2 == 0 ? all_reduce_algorithm::two_shot : all_reduce_algorithm::one_shot;
        p.type = p.output_type = dtype::float16;
        p.rows = calls[i].rows;
        p.width = calls[i].width;
        p.input = inputs.back().data();
        p.output = outputs.back().data();
        all_reduce(g, p, s);
      }
      for (std::size_t i = 0; i < calls.size(); ++i) {
        sums[2 * i + static_cast<std::size_t>(g.rank)] = on_host(s, outputs[i]);
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      CHECK(worst_error(sums[i], of[i / 2].sums, 1e-30) == 0);
    }
  });
}

TEST_CASE("a captured sum can be launched again and again, between others") {
  const reduction<float> of({2, 3, 64});
  const test_ranks peers(2, 3, of.sums.size() * sizeof(float));
  std::atomic<int> wrong = 0;
  peers.run([&](const peer_group& g) {
    stream s;
    auto input = on_device(s, of.inputs[static_cast<std::size_t>(g.rank)]);
    device_array<float> sums(input.size());
    all_reduce_params p;
    p.type = p.output_type = dtype::float32;
    p.rows = 3;
    p.width = 64;
    p.input = input.data();
    p.output = sums.data();
    graph both = capture(s, [&] {
      for (const auto way : {all_reduce_algorithm::one_shot, all_reduce_algorithm::two_shot}) {
        p.algorithm = way;
        all_reduce(g, p, s);
      }
    });
    for (int repeat = 0; repeat < 3; ++repeat) {
      sums.fill_zero(s);
      both.launch(s);
      const auto by_graph = on_host(s, sums);
      sums.fill_zero(s);
      all_reduce(g, p, s);
      const auto alone = on_host(s, sums);
      for (const auto* got : {&by_graph, &alone}) {
        if (worst_error(*got, of.sums, 1e-30) > 0) ++wrong;
      }
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("nobody waits for a group that was abandoned") {
  test_ranks peers(2, 1, 64);
  stream s;
  auto x = on_device(s, std::vector<float>(8, 1.0F));
  all_reduce_params p;
  p.type = p.output_type = dtype::float32;
  p.rows = 1;
  p.width = 8;
  p.input = p.output = x.data();
  pinned_array<int> abandoned(1);
  abandoned[0] = 0;
  peer_group g = peers.of(0);
  g.abandoned = abandoned.data();
  all_reduce(g, p, s);
  std::thread later([&] { std::atomic_ref(abandoned[0]).store(1); });
  CHECK_NOTHROW(s.synchronize());
  later.join();
}

#if !defined(OCTAVO_NATIVE_CUDA)  // the emulator alone can be told to wait less long
TEST_CASE("a rank whose peer never comes ends with an error") {
  const auto former = simt::current_options().spin_seconds_max;
  simt::current_options().spin_seconds_max = 0.05;
  const test_ranks peers(2, 1, 64);
  stream s;
  auto x = on_device(s, std::vector<__half>(8, __half(1.0F)));
  all_reduce_params p;
  p.type = p.output_type = dtype::float16;
  p.rows = 1;
  p.width = 8;
  p.input = x.data();
  p.output = x.data();
  all_reduce(peers.of(0), p, s);
  CHECK_THROWS_AS(s.synchronize(), device_error);
  simt::current_options().spin_seconds_max = former;
}
#endif

TEST_CASE("all_reduce refuses more than its group has room for") {
  const test_ranks peers(1, 1, 64);
  stream s;
  all_reduce_params p;
  p.type = p.output_type = dtype::float16;
  p.rows = 5;
  p.width = 8;
  p.input = p.output = &p;
  CHECK_THROWS_WITH(all_reduce(peers.of(0), p, s),
                    "all_reduce: a rank's part in bytes is 80; allowed are up to 64, the group's "
                    "payload_bytes");
  CHECK(choose_algorithm(8, 300 << 10) == all_reduce_algorithm::two_shot);
  CHECK(choose_algorithm(4, 300 << 10) == all_reduce_algorithm::one_shot);
  CHECK(choose_algorithm(2, 1 << 30) == all_reduce_algorithm::one_shot);
}
