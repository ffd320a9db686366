// Repacking keeps every weight, whatever form it was stored in.
#include "gpu/kernels/w4a16/repack.hpp"

#include <atomic>
#include <thread>

#include "core/error.hpp"
#include "gpu/kernels/w4a16/lane_layout.hpp"
#include "gpu/kernels/w4a16/stored_samples.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

/// A weight read back from an image, from the words of the layout's description
/// rather than by the function that places codes.
float weight_at(const lane_image& image, std::int64_t n, std::int64_t k) {
  const int bits = bits_of(image.code);
  const std::int64_t block = bits == 4 ? 64 : 32;
  const std::int64_t blocks = (image.outputs + block - 1) / block;
  const std::int64_t inside = n % block;
  const std::int64_t t = k % 8 / 2;
  const std::int64_t lane = n % 8 * 4 + t;
  const std::int64_t start = ((k / 16 * blocks + n / block) * 32 + lane) * 16;
  const bool upper = k % 16 >= 8;
  const bool odd = k % 2 == 1;
  unsigned code = 0;
  if (bits == 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, image.codes.data() + start + inside / 16 * 4, 4);
    const int second = inside % 16 >= 8 ? 2 : 0;
    code = word >> (4 * (second + (upper ? 1 : 0) + (odd ? 4 : 0))) & 15U;
  } else {
    code = std::to_integer<unsigned>(
        image.codes[start + inside / 8 * 4 + (upper ? 1 : 0) + (odd ? 2 : 0)]);
  }
  const std::int64_t place =
      k / image.group * (blocks * block) + n / block * block + n % 8 * (block / 8) + inside / 8;
  float scale = 1.0F;
  if (!image.scales.empty()) scale = number_of(image.type, image.scales[place]);
  if (!image.column_scales.empty()) {
    scale = image.column_scales[image.column_scales.size() > 1 ? n : 0];
  }
  if (image.code == lane_code::e4m3) {
    const float moved = image.type == dtype::float16 ? 0x1p8F : 0x1p120F;
    if (!image.scales.empty()) scale /= moved;
    return model::e4m3_to_float(static_cast<std::uint8_t>(code)) * scale;
  }
  const int zero = image.zeros.empty() ? 1 << (bits - 1) : image.zeros[place];
  return static_cast<float>(static_cast<int>(code) - zero) * scale;
}

void check_image(const stored_sample& stored, dtype type) {
  const lane_image image = repack(stored.matrix, type, "w");
  const std::vector<float> all = stored.dequantized();
  std::vector<int> seen(static_cast<std::size_t>(image.source_inputs));
  REQUIRE(image.inputs % 8 == 0);
  for (std::int64_t k = 0; k < image.inputs; ++k) {
    const std::int64_t source = image.order.empty() ? k : image.order[k];
    if (source < 0) continue;
    ++seen[source];
    for (std::int64_t n = 0; n < image.outputs; ++n) {
      REQUIRE(weight_at(image, n, k) == all[n * image.source_inputs + source]);
    }
  }
  REQUIRE(seen == std::vector<int>(seen.size(), 1));
}

}  // namespace

TEST_CASE("repacked weights are the stored weights") {
  stored_sample stored(21);
  SECTION("AWQ") {
    stored.make_awq(72, 256, 64);
  }
  SECTION("GPTQ, first version") {
    stored.make_gptq(4, 72, 256, 128, 1, false);
  }
  SECTION("GPTQ, second version") {
    stored.make_gptq(4, 72, 256, 128, 0, false);
  }
  SECTION("GPTQ, an order of its own") {
    stored.make_gptq(4, 72, 256, 64, 1, true);
  }
  SECTION("GPTQ, 8 bits") {
    stored.make_gptq(8, 36, 192, 64, 1, false);
  }
  SECTION("GPTQ, 8 bits, an order of its own, small groups") {
    stored.make_gptq(8, 36, 96, 24, 1, true);
  }
  SECTION("compressed-tensors") {
    stored.make_packed(4, 77, 256, 32, true);
  }
  SECTION("compressed-tensors, a last group that is smaller") {
    stored.make_packed(4, 10, 200, 64, true);
  }
  SECTION("compressed-tensors, 8 bits, symmetric") {
    stored.make_packed(8, 77, 256, 128, false);
  }
  SECTION("signed bytes, a scale a row") {
    stored.make_bytes(model::element_type::i8, 40, 144, 1, 144);
  }
  SECTION("8-bit floats, one scale") {
    stored.make_bytes(model::element_type::f8_e4m3, 40, 144, 40, 144);
  }
  SECTION("8-bit floats, blocks") {
    stored.make_bytes(model::element_type::f8_e4m3, 150, 320, 128, 128);
  }
  check_image(stored, dtype::float16);
  check_image(stored, dtype::bfloat16);
}

TEST_CASE("symmetric weights take no zero points, ordered ones no order") {
  stored_sample stored(22);
  stored.make_packed(4, 64, 256, 128, false);
  const lane_image image = repack(stored.matrix, dtype::float16, "w");
  CHECK(image.zeros.empty());
  CHECK(image.order.empty());
  CHECK(image.bytes() == 64 * 256 / 2 + 2 * 64 * 2);
}

TEST_CASE("repacking in threads gives what repacking in one gives") {
  stored_sample stored(23);
  stored.make_awq(136, 512, 64);
  const lane_image serial = repack(stored.matrix, dtype::float16, "w");
  const auto threads = [](std::size_t count, const std::function<void(std::size_t)>& body) {
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) {
      workers.emplace_back([&] {
        for (std::size_t at = next++; at < count; at = next++) body(at);
      });
    }
  };
  CHECK(repack(stored.matrix, dtype::float16, "w", threads).codes == serial.codes);
}

TEST_CASE("repacking refuses what has no kernel, and scales out of range") {
  const auto refused = [](const model::weight_matrix& matrix, dtype type, const char* word) {
    try {
      static_cast<void>(repack(matrix, type, "blk.3.ffn_up"));
      FAIL("accepted");
    } catch (const input_error& error) {
      CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("blk.3.ffn_up"));
      CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(word));
    }
  };
  const std::vector<std::byte> bytes(144);
  refused(model::block_matrix{1, 256, model::element_type::q4_k, bytes}, dtype::float16, "GGUF");
  stored_sample stored(24);
  stored.make_packed(4, 8, 64, 64, false);
  refused(stored.matrix, dtype::float32, "float32");
  const std::vector<float> large(8, 1e6F);
  auto& packed = std::get<model::packed_matrix>(stored.matrix);
  packed.scales = {model::element_type::f32, std::as_bytes(std::span(large))};
  refused(stored.matrix, dtype::float16, "scale");
}
