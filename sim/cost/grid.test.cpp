// Interpolation at, between, below and beyond grid points.
#include "sim/cost/grid.hpp"

#include "tests/support/catch.hpp"

using namespace octavo::sim;

TEST_CASE("a grid gives its own values at its points and lines between them") {
  const grid<1> table{{grid_axis{{1, 2, 4}}}, {10, 20, 60}};
  CHECK(table.at({1}) == 10);
  CHECK(table.at({2}) == 20);
  CHECK(table.at({4}) == 60);
  CHECK(table.at({3}) == 40);
  CHECK(table.at({1.5}) == 15);
}

TEST_CASE("below a grid its floor holds, beyond it a line from half the range") {
  const grid<1> table{{grid_axis{{1, 2, 4, 8}}}, {10, 20, 40, 80}};
  CHECK(table.at({0}) == 10);
  CHECK(table.at({16}) == 160);
  // Noise between the last two points does not set the slope: the line goes from
  // (64, 64) to (127, 127).
  const grid<1> noisy{{grid_axis{{32, 64, 126, 127}}}, {32, 64, 150, 127}};
  CHECK(noisy.at({190}) == Catch::Approx(190));
  // A falling line stops at zero.
  const grid<1> falling{{grid_axis{{1, 2}}}, {10, 1}};
  CHECK(falling.at({10}) == 0);
  const grid<1> single{{grid_axis{{5}}}, {7}};
  CHECK(single.at({1}) == 7);
  CHECK(single.at({50}) == 7);
}

TEST_CASE("a product of two coordinates is interpolated exactly") {
  // f = 3 + 2xy lies on every bilinear patch.
  const grid<2> table{{grid_axis{{1, 4}}, grid_axis{{10, 50}}}, {23, 103, 83, 403}};
  CHECK(table.at({2, 30}) == Catch::Approx(123));
  CHECK(table.at({3, 20}) == Catch::Approx(123));
  CHECK(table.at({8, 100}) == Catch::Approx(1603));
}

TEST_CASE("four axes interpolate each on its own") {
  std::vector<double> values;
  for (const double a : {0.0, 2.0}) {
    for (const double b : {0.0, 4.0}) {
      for (const double c : {1.0, 3.0}) {
        for (const double d : {0.0, 10.0}) values.push_back(1 + a + 10 * b + 100 * c + 1000 * d);
      }
    }
  }
  const grid<4> table{{grid_axis{{0, 2}}, grid_axis{{0, 4}}, grid_axis{{1, 3}}, grid_axis{{0, 10}}},
                      values};
  CHECK(table.at({1, 3, 2, 7}) == Catch::Approx(1 + 1 + 30 + 200 + 7000));
  CHECK(table.at({0, 0, 1, 0}) == Catch::Approx(101));
}

TEST_CASE("a missing point is interpolated between measured neighbours") {
  std::vector<measured_point<2>> points;
  for (const double x : {1.0, 2.0, 4.0}) {
    for (const double y : {10.0, 20.0}) points.push_back({{x, y}, x * y});
  }
  points.push_back({{3, 10}, 33});  // (3, 20) lies between (2, 20) and (4, 20)
  points.push_back({{1, 10}, 20});  // repeated: averaged with 10
  const auto result = make_grid<2>(points);
  CHECK(result.points_filled == 1);
  CHECK(result.points_dropped == 0);
  CHECK(result.table.values() == std::vector<double>{15, 20, 20, 40, 33, 60, 40, 80});
}

TEST_CASE("interpolations along several axes are averaged") {
  std::vector<measured_point<2>> points;
  for (const double x : {1.0, 2.0, 3.0}) {
    for (const double y : {1.0, 2.0, 3.0}) {
      // Along x the middle of 10 and 30, along y that of 40 and 80.
      const double value = x == 1 ? 10 : x == 3 ? 30 : y == 1 ? 40 : 80;
      if (x != 2 || y != 2) points.push_back({{x, y}, value});
    }
  }
  const auto result = make_grid<2>(points);
  CHECK(result.points_filled == 1);
  CHECK(result.table.at({2, 2}) == 40);
}

TEST_CASE("a coordinate that cannot be completed is dropped") {
  std::vector<measured_point<2>> points;
  for (const double x : {1.0, 2.0}) {
    for (const double y : {10.0, 20.0, 30.0}) points.push_back({{x, y}, x * y});
  }
  points.push_back({{8, 20}, 160});  // at the edge: (8, 10) has one neighbour only
  const auto result = make_grid<2>(points);
  CHECK(result.points_dropped == 1);
  CHECK(result.points_filled == 0);
  CHECK(result.table.values() == std::vector<double>{10, 20, 30, 20, 40, 60});
  CHECK(make_grid<2>({}).table.empty());
}
