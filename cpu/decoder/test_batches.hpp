// Tests only: batches through a decoder of any number of ranks, how far they are
// from what is expected, and weights whose inputs have an order of their own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "cpu/cpu_executor.hpp"
#include "cpu/decoder/decoder.hpp"
#include "cpu/test_model.hpp"
#include "model/generation/kv_groups.hpp"

namespace octavo::cpu {

/// Blocks in descending order, so that a table is not the identity.
inline slot whole_slot(const std::vector<kv_group>& groups, std::int32_t tokens,
                       std::uint32_t& next) {
  slot state;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::int32_t blocks = (tokens + 15) / 16 * groups[g].pool_blocks;
    for (std::int32_t i = 0; i < blocks; ++i) state.tables[g].emplace_back(--next);
  }
  return state;
}

using texts = std::vector<std::vector<token_id>>;
/// The logits after each token, by text.
using all_logits = std::vector<std::vector<std::vector<float>>>;

struct way_to_compute {
  std::size_t threads = 1;
  /// Tokens of each text in one batch.
  std::size_t chunk = 1000;
  model::kv_dtype kv_dtype = model::kv_dtype::fp16;
};

/// All texts at once, chunk by chunk.
inline all_logits compute(const decoder_weights& weights, const texts& inputs, way_to_compute how) {
  thread_pool pool{how.threads};
  kv_cache cache{weights.config, 128, weights.ranks(), how.kv_dtype};
  decoder computes{weights, pool, cache};
  const auto groups = model::engine_kv_groups(weights.config, cpu::kv_cache::block_size);
  std::uint32_t next = 128;
  std::vector<slot> slots;
  std::size_t longest = 0;
  for (const auto& text : inputs) {
    slots.push_back(whole_slot(groups, static_cast<std::int32_t>(text.size()), next));
    longest = std::max(longest, text.size());
  }
  all_logits out(inputs.size());
  const auto width = static_cast<std::size_t>(weights.config.vocab_size);
  for (std::size_t from = 0; from < longest; from += how.chunk) {
    decoder_batch batch;
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t end = std::min(from + how.chunk, inputs[i].size());
      if (from >= end) continue;
      batch.sequences.push_back({&slots[i], static_cast<std::int32_t>(from),
                                 static_cast<std::uint32_t>(batch.tokens.size()),
                                 static_cast<std::uint32_t>(end - from)});
      for (std::size_t at = from; at < end; ++at) {
        batch.logit_rows.push_back(static_cast<std::uint32_t>(batch.tokens.size()));
        batch.tokens.push_back(inputs[i][at]);
        owner.push_back(i);
      }
    }
    const auto logits = computes.forward(batch);
    if (logits.size() != owner.size() * width) throw std::logic_error("rows are missing");
    for (std::size_t row = 0; row < owner.size(); ++row) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * width);
      out[owner[row]].emplace_back(begin, begin + static_cast<std::ptrdiff_t>(width));
    }
  }
  return out;
}

/// Of all tokens the largest length of a difference of logits, as a share of the
/// logits' own length.
template <class Got, class Expected>
double largest_difference(const Got& got, const Expected& expected) {
  double largest = 0;
  for (std::size_t at = 0; at < expected.size(); ++at) {
    double difference = 0;
    double length = 0;
    for (std::size_t t = 0; t < expected[at].size(); ++t) {
      const auto value = static_cast<double>(expected[at][t]);
      difference += std::pow(static_cast<double>(got[at][t]) - value, 2);
      length += std::pow(value, 2);
    }
    largest = std::max(largest, std::sqrt(difference / length));
  }
  return largest;
}

/// How far two texts are from float64, cut into chunks of 21 tokens.
inline double largest_error(const tiny_model& model, int ranks = 1) {
  texts inputs{random_tokens(75, 1), random_tokens(40, 2)};
  for (auto& text : inputs) {
    for (token_id& token : text) token %= static_cast<token_id>(model.shape().tokens);
  }
  const auto got = compute(*model.load(ranks), inputs,
                           {.threads = 2, .chunk = 21, .kv_dtype = model.shape().kv_dtype});
  double largest = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    largest = std::max(largest, largest_difference(got[i], model.logits(inputs[i])));
  }
  return largest;
}

/// A GPTQ weight of 4 bits whose groups of 32 inputs lie anywhere, and the same as floats.
struct shuffled_weight {
  std::vector<std::uint32_t> codes, zeros;
  std::vector<std::uint16_t> scales;
  std::vector<std::int32_t> groups;
  std::vector<float> floats;
  model::weight_matrix shuffled, plain;

  shuffled_weight(std::size_t rows, std::size_t columns, unsigned seed)
      : codes(columns / 8 * rows),
        zeros(columns / 32 * rows / 8),
        scales(columns / 32 * rows),
        groups(columns),
        floats(rows * columns) {
    std::mt19937 random(seed);
    for (auto& word : codes) word = static_cast<std::uint32_t>(random());
    for (auto& word : zeros) word = 0x77777777;  // stored less one: 8
    for (auto& scale : scales) {
      scale = model::float_to_half(0.02F + 0.0001F * static_cast<float>(random() % 400));
    }
    for (std::size_t k = 0; k < columns; ++k) groups[k] = static_cast<std::int32_t>(k / 32);
    std::shuffle(groups.begin(), groups.end(), random);
    for (std::size_t n = 0; n < rows; ++n) {
      for (std::size_t k = 0; k < columns; ++k) {
        const auto code = static_cast<int>(codes[k / 8 * rows + n] >> (4 * (k % 8)) & 15U);
        const auto group = static_cast<std::size_t>(groups[k]);
        floats[n * columns + k] =
            static_cast<float>(code - 8) * model::half_to_float(scales[group * rows + n]);
      }
    }
    const auto bytes = [](const auto& values) { return std::as_bytes(std::span{values}); };
    const auto signed_rows = static_cast<std::int64_t>(rows);
    const auto signed_columns = static_cast<std::int64_t>(columns);
    shuffled = model::gptq_matrix{signed_rows,
                                  signed_columns,
                                  4,
                                  32,
                                  1,
                                  bytes(codes),
                                  bytes(zeros),
                                  {model::element_type::f16, bytes(scales)},
                                  bytes(groups)};
    plain =
        model::block_matrix{signed_rows, signed_columns, model::element_type::f32, bytes(floats)};
  }
};

}  // namespace octavo::cpu
