// Ranks that meet on their devices: what they leave against float64, its bits however rows
// are cut, and that the end of one rank is not waited for.
#include "gpu/executor/peer_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <latch>

#include "core/error.hpp"
#include "gpu/executor/rank_threads.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/kernels/rms_norm/rms_norm_reference.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

constexpr int ranks = 2;
constexpr int width = 132;  // halves of odd rows are aligned to 8 bytes only
constexpr float epsilon = 1e-5F;

/// Two ranks, a device each.
class pair_of_ranks {
 public:
  explicit pair_of_ranks(std::size_t payload_bytes, std::unique_ptr<communicator> larger = nullptr)
      : says_({0, 1}, payload_bytes, std::move(larger)), threads_({0, 1}) {
    enable_peer_access(0, 1);
    enable_peer_access(1, 0);
  }

  communicator& says() { return says_; }
  void run(const std::function<void(int)>& work) {
    threads_.run(work, [this] { says_.abandon(); });
  }

 private:
  peer_communicator says_;
  rank_threads threads_;
};

/// Of an emulated machine always.
bool devices_reach_each_other() {
  return devices().size() >= 2 && path_between(0, 1) != peer_path::none;
}

/// Of rank r, rows of its own.
std::vector<float> part_of(int rank, int rows) {
  return random_rows<float>(static_cast<std::size_t>(rows) * width,
                            static_cast<unsigned>(rank + 1));
}

struct summed {
  std::vector<float> sum, residual;
  std::vector<__half> rounded, normed;

  bool operator==(const summed& o) const {
    const auto same = [](const auto& a, const auto& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    return same(sum, o.sum) && same(residual, o.residual) && same(rounded, o.rounded) &&
           same(normed, o.normed);
  }
};

/// `rows` rows, `at_once` in each call.
summed sum_rows(communicator& says, int rank, int rows, int at_once) {
  stream on;
  const std::size_t count = static_cast<std::size_t>(rows) * width;
  auto part = on_device(on, part_of(rank, rows));
  auto residual = on_device(on, random_rows<float>(count, 11));
  const auto weight = on_device(on, random_rows<float>(width, 12));
  const auto branch_weight = on_device(on, random_rows<float>(width, 13));
  device_array<float> sum(count);
  device_array<__half> rounded(count), normed(count), branch(count);
  for (int row = 0; row < rows; row += at_once) {
    const std::size_t at = static_cast<std::size_t>(row) * width;
    const partial_rows partial{std::min(at_once, rows - row), width, part.data() + at};
    says.sum(on, rank, partial, dtype::float32, sum.data() + at);
    says.sum(on, rank, partial, dtype::float16, rounded.data() + at);
    rms_norm_params p;
    p.type = dtype::float16;
    p.rows = partial.rows;
    p.width = width;
    p.epsilon = epsilon;
    p.residual = residual.data() + at;
    p.input_weight = branch_weight.data();
    p.weight = weight.data();
    p.output = normed.data() + at;
    says.sum_and_norm(on, rank, partial, p, branch.data());
  }
  return {on_host(on, sum), on_host(on, residual), on_host(on, rounded), on_host(on, normed)};
}

void check_rows(const summed& got, int rows) {
  const auto a = part_of(0, rows);
  const auto b = part_of(1, rows);
  std::vector<double> sums(a.size());
  std::ranges::transform(a, b, sums.begin(), [](double x, double y) { return x + y; });
  CHECK(worst_error(got.sum, sums, 1e-2) < 1e-5);
  CHECK(worst_error(got.rounded, sums, 1e-2) < 1e-3);
  const auto before = random_rows<float>(a.size(), 11);
  const auto weight = random_rows<float>(width, 12);
  const auto branch_weight = random_rows<float>(width, 13);
  std::vector<double> residuals, normed;
  for (std::size_t at = 0; at < a.size(); at += width) {
    auto row = rms_norm_reference(std::span(sums).subspan(at, width),
                                  std::vector<double>(branch_weight.begin(), branch_weight.end()),
                                  epsilon);
    for (std::size_t i = 0; i < width; ++i) row[i] += before[at + i];
    residuals.insert(residuals.end(), row.begin(), row.end());
    row = rms_norm_reference(row, std::vector<double>(weight.begin(), weight.end()), epsilon);
    normed.insert(normed.end(), row.begin(), row.end());
  }
  CHECK(worst_error(got.residual, residuals, 1e-2) < 1e-4);
  CHECK(worst_error(got.normed, normed, 1e-2) < 1e-3);
}

/// Notes what it is asked for.
class listener final : public communicator {
 public:
  void sum(stream&, int, const partial_rows& partial, dtype, void*) override {
    asked.push_back(partial.count());
  }
  void gather(stream&, int, const float*, std::size_t count, float*) override {
    asked.push_back(count);
  }
  [[nodiscard]] bool capturable() const override { return false; }
  [[nodiscard]] bool reads_peers() const override { return false; }
  void abandon() override { abandoned_ = true; }

  std::vector<std::size_t> asked;
};

}  // namespace

TEST_CASE("sums over ranks do not depend on how rows are cut, to the bit") {
  if (!devices_reach_each_other()) return;
  constexpr int rows = 7;
  constexpr std::size_t row_bytes = width * sizeof(float);
  std::vector<summed> results;
  for (const auto& [payload_rows, at_once] : {std::pair{7, 7}, {3, 7}, {7, 1}, {7, 2}}) {
    pair_of_ranks pair(static_cast<std::size_t>(payload_rows) * row_bytes);
    results.resize(results.size() + ranks);
    pair.run([&](int rank) {
      results[results.size() - ranks + static_cast<std::size_t>(rank)] =
          sum_rows(pair.says(), rank, rows, at_once);
    });
  }
  check_rows(results[0], rows);
  for (const summed& other : results) CHECK(other == results[0]);
}

TEST_CASE("what ranks gather may take several exchanges") {
  if (!devices_reach_each_other()) return;
  pair_of_ranks pair(16 * sizeof(float));
  auto expected = part_of(0, 2);
  const auto second = part_of(1, 2);
  expected.insert(expected.end(), second.begin(), second.end());
  std::vector<std::vector<float>> got(ranks);
  pair.run([&](int rank) {
    stream on;
    const auto part = on_device(on, part_of(rank, 2));
    device_array<float> all(expected.size());
    pair.says().gather(on, rank, part.data(), part.size(), all.data());
    got[static_cast<std::size_t>(rank)] = on_host(on, all);
  });
  for (const auto& all : got) CHECK(all == expected);
}

TEST_CASE("what is more than an exchange takes goes to the communicator for large sums") {
  auto made = std::make_unique<listener>();
  listener& large = *made;
  peer_communicator says({0}, 2 * width * sizeof(float), std::move(made));
  CHECK_FALSE(says.capturable());
  stream on;
  auto part = on_device(on, part_of(0, 3));
  device_array<float> out(part.size());
  says.sum(on, 0, {3, width, part.data()}, dtype::float32, out.data());
  says.gather(on, 0, part.data(), 2 * width + 1, out.data());
  CHECK(large.asked == std::vector<std::size_t>{3 * width, 2 * width + 1});
  says.sum(on, 0, {2, width, part.data()}, dtype::float32, out.data());
  says.gather(on, 0, part.data(), 2 * width, out.data());
  CHECK(large.asked.size() == 2);
  on.synchronize();
  says.abandon();
  CHECK_THROWS_AS(large.require_working(), device_error);
}

TEST_CASE("a rank that fails ends its peers' waiting, on the device and for good") {
  if (!devices_reach_each_other()) return;
  pair_of_ranks pair(width * sizeof(float));
  std::latch queued(1);
  bool ended = false;
  const auto work = [&](int rank) {
    if (rank == 1) {
      queued.wait();
      throw input_error("rank 1 is out");
    }
    stream on;
    auto part = on_device(on, part_of(rank, 1));
    device_array<float> sum(width);
    pair.says().sum(on, rank, {1, width, part.data()}, dtype::float32, sum.data());
    queued.count_down();
    on.synchronize();
    ended = true;
  };
  CHECK_THROWS_WITH(pair.run(work), "rank 1 is out");
  CHECK(ended);
  const auto late = [&](int rank) { sum_rows(pair.says(), rank, 1, 1); };
  CHECK_THROWS_AS(pair.run(late), device_error);
}

TEST_CASE("ranks that pass wait for none, and agree on their calls afterwards") {
  if (!devices_reach_each_other()) return;
  pair_of_ranks pair(width * sizeof(float));
  pair.says().let_pass(true);
  // One after the other: whoever waited for the other would wait for good.
  for (const int alone : {0, 1}) {
    pair.run([&](int rank) {
      if (rank == alone) sum_rows(pair.says(), rank, 3, 1);
    });
  }
  pair.says().let_pass(false);
  std::vector<summed> got(ranks);
  pair.run(
      [&](int rank) { got[static_cast<std::size_t>(rank)] = sum_rows(pair.says(), rank, 3, 1); });
  check_rows(got[0], 3);
  CHECK(got[1] == got[0]);
}

TEST_CASE("a group of ranks has a least and a most size") {
  CHECK_THROWS_WITH(peer_communicator(std::vector<int>(9, 0), 64),
                    "tensor_parallel_size is 9; 1 to 8 are allowed");
  CHECK_THROWS_AS(peer_communicator({}, 64), input_error);
  CHECK_THROWS_WITH(peer_communicator({0}, 0), "payload_bytes is 0; 4 and more are allowed");
}
