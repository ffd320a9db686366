// Paged attention against its definition in double: kinds of batches, types, head
// sizes, schedules.
#include "gpu/kernels/paged_attention/paged_attention.hpp"

#include "core/error.hpp"
#include "gpu/kernels/paged_attention/test_batch.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

/// In units of test_batch::worst_error: one rounding of outputs, one of weights.
constexpr double error_max = 3;

attention_shape shape_of(int kv_heads, int group, int head_dim, dtype type = dtype::float16,
                         bool fp8 = false) {
  attention_shape shape;
  shape.kv_heads = kv_heads;
  shape.heads = kv_heads * group;
  shape.head_dim = head_dim;
  shape.type = type;
  shape.kv_type = fp8 ? dtype::float8_e4m3 : type;
  return shape;
}

void check_batch(const test_batch& batch) {
  const test_tensor out = batch.run();
  CHECK(batch.worst_error(out) < error_max);
  CHECK(batch.others_untouched(out));
}

// One token each: a single key, borders of pages, several blocks' worth of keys.
const std::vector<test_sequence> decodes = {{0}, {14}, {15}, {16}, {63}, {64}, {290}, {517}};
// Chunks that begin and end within pages, and whole prompts.
const std::vector<test_sequence> chunks = {{0, 5}, {7, 30}, {31, 17}, {16, 16}, {100, 3}};
const std::vector<test_sequence> mixed = {{40}, {0, 33}, {200}, {9, 20}, {3}, {130, 2}};

}  // namespace

TEST_CASE("decoding equals attention in double, for every group size and schedule") {
  simt::for_each_schedule([](const char* name) {
    for (const int group : {1, 3, 4, 7}) {
      CAPTURE(name, group);
      check_batch({shape_of(2, group, 64), decodes});
    }
  });
}

TEST_CASE("prompts in chunks equal attention in double, under every schedule") {
  simt::for_each_schedule([](const char* name) {
    CAPTURE(name);
    check_batch({shape_of(2, 2, 64), chunks});
  });
}

TEST_CASE("decoding and prompts share a step, under every schedule") {
  simt::for_each_schedule([](const char* name) {
    CAPTURE(name);
    test_options options;
    options.gap_rows = 2;
    check_batch({shape_of(1, 4, 32, dtype::bfloat16), mixed, options});
  });
}

TEST_CASE("every head size and type of keys, in both kinds of tiles") {
  for (const int head_dim : {16, 32, 64, 80, 96, 128, 256}) {
    for (const dtype type : {dtype::float16, dtype::bfloat16}) {
      for (const bool fp8 : {false, true}) {
        CAPTURE(head_dim, name_of(type), fp8);
        check_batch({shape_of(1, 4, head_dim, type, fp8), {{150}, {5, 20}, {0}}});
      }
    }
  }
}

TEST_CASE("single tokens on CUDA cores, for every type") {
  for (const int head_dim : {64, 128}) {
    for (const int group : {1, 2, 3}) {
      for (const dtype type : {dtype::float16, dtype::bfloat16}) {
        for (const bool fp8 : {false, true}) {
          CAPTURE(head_dim, group, name_of(type), fp8);
          const attention_shape shape = shape_of(1, group, head_dim, type, fp8);
          REQUIRE(uses_vector_kernel(shape));
          check_batch({shape, {{150}, {0}, {20}}});
        }
      }
    }
  }
}

TEST_CASE("groups of more heads than a tile has rows") {
  check_batch({shape_of(1, 20, 32), {{40}, {3, 9}}});
  check_batch({shape_of(1, 71, 64), {{40}}});
}

TEST_CASE("a window ends at its very token, also where it begins in a block") {
  for (const int window : {1, 15, 16, 17, 50}) {
    for (const int group : {1, 4}) {
      CAPTURE(window, group);
      attention_shape shape = shape_of(1, group, 64);
      shape.window = window;
      check_batch({shape, {{0}, {14}, {15}, {16}, {47}, {48}, {49}, {50}, {200}, {30, 40}}});
    }
  }
}

TEST_CASE("a window of several pieces equals attention in double") {
  attention_shape shape = shape_of(1, 4, 32);
  shape.window = 300;
  check_batch({shape, {{700}, {299}, {300}, {350, 10}}});
}

TEST_CASE("scores are capped softly") {
  test_options options;
  options.soft_cap = 1.5F;
  for (const int group : {1, 4}) check_batch({shape_of(1, group, 64), mixed, options});
}

TEST_CASE("sequences share pages") {
  check_batch({shape_of(2, 4, 32), {{100}, {90, 1, 5}, {80, 30, 5}, {130, 1, 4}}});
}

TEST_CASE("long prompts after long contexts split their keys") {
  const test_batch batch(shape_of(1, 4, 32, dtype::float16), {{600, 20}});
  attention_planner planner = batch.planner();
  std::vector<std::byte> plan(planner.capacity().bytes());
  REQUIRE(planner.plan(batch.sequences(), plan).merges > 0);
  check_batch(batch);
}

TEST_CASE("entries that a plan does not use do nothing") {
  test_options options;
  options.full_grid = true;
  options.gap_rows = 3;
  check_batch({shape_of(2, 4, 32), mixed, options});
  check_batch({shape_of(2, 1, 64), mixed, options});
}

TEST_CASE("a captured graph follows plans that are written to the same place") {
  const attention_shape shape = shape_of(2, 4, 32);
  test_options options;
  options.full_grid = true;
  const std::vector<test_sequence> steps[] = {{{600}, {20}, {7}}, {{16}, {17}, {300}}};
  const test_batch first(shape, steps[0], options);
  const test_batch second(shape, steps[1], options);
  stream s;
  auto a = first.upload(s);
  const auto b = second.upload(s);
  // Only buffers that a step writes keep their place; pools are swapped for the test.
  REQUIRE(a.plan.size() == b.plan.size());
  s.synchronize();
  paged_attention_run run = a.run;
  run.keys = b.run.keys;
  run.values = b.run.values;
  run.tables = b.run.tables;
  run.queries = b.run.queries;
  graph captured = capture(s, [&] { paged_attention(run, s); });
  copy_on_device(s, a.plan.data(), b.plan.data(), b.plan.size());
  captured.launch(s);
  CHECK(second.worst_error(second.download(s, a)) < error_max);
}

TEST_CASE("what cannot be run is refused by name") {
  stream s;
  const test_batch batch(shape_of(1, 4, 32), {{3}});
  const auto d = batch.upload(s);
  s.synchronize();
  const auto refused = [&](auto change) {
    paged_attention_run run = d.run;
    change(run);
    std::string message = "nothing";
    try {
      paged_attention(run, s);
    } catch (const input_error& e) {
      message = e.what();
    }
    return message;
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refused([](auto& r) { r.shape.head_dim = 48; }), ContainsSubstring("head_dim is 48"));
  CHECK_THAT(refused([](auto& r) {
               r.shape.heads = 3;
               r.shape.kv_heads = 2;
             }),
             ContainsSubstring("heads is 3"));
  CHECK_THAT(refused([](auto& r) { r.shape.kv_type = dtype::bfloat16; }),
             ContainsSubstring("kv_type is bfloat16"));
  CHECK_THAT(refused([](auto& r) { r.query_stride = 100; }), ContainsSubstring("query_stride"));
  CHECK_THAT(refused([](auto& r) { r.keys = nullptr; }), ContainsSubstring("keys is null"));
  CHECK_THAT(refused([](auto& r) { r.launch.wide = 9999; }), ContainsSubstring("launch.wide"));
  CHECK_THAT(refused([](auto& r) { r.scale = 0; }), ContainsSubstring("scale"));
}
