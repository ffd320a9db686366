// What an executor that generates text knows of its sequences and does around the
// decoder, whatever device that runs on: it follows the plans, says which tokens are
// to be chosen from what, and turns chosen tokens into text and ends, so that a stop
// is a fact of the step.
//
//   generations all{words, groups, {.end_tokens = ends, .seed = 7}};
//   all.follow(*plan);
//   decoder_batch batch = batch_of(*plan, all.slots());
//   …                                    // logits, then one token for each of wanted()
//   all.take(*plan, chosen);
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/step.hpp"
#include "model/generation/slot_table.hpp"
#include "model/sampling/sampler.hpp"
#include "model/tokenizer/sequence_text.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace octavo::model {

struct generation_options {
  /// Tokens at which generation ends, ascending.
  std::vector<token_id> end_tokens;
  /// For requests that bring no seed.
  std::uint64_t seed = 0;
};

/// A token that the step shall choose.
struct wanted_token {
  std::uint32_t work = 0;  ///< index in `step::work`
  std::uint16_t sample = 0;
  std::size_t row = 0;  ///< of the logits
};

class generations {
 public:
  generations(tokenizer words, std::vector<octavo::kv_group> groups, generation_options options)
      : words_(std::move(words)), options_(std::move(options)), slots_(std::move(groups)) {}

  /// Applies a plan's releases, forks, admissions and block-table changes, and makes
  /// the texts of sequences that enter ready.
  void follow(const step& plan);

  [[nodiscard]] const slot_table& slots() const { return slots_; }
  [[nodiscard]] const tokenizer& words() const { return words_; }

  /// Fills `to` with the tokens that the plan's work wants, in its order.
  static void list_wanted(const step& plan, std::vector<wanted_token>& to);
  /// The parameters that a wanted token is chosen by.
  [[nodiscard]] const sampling_parameters& sampling(const step& plan,
                                                    const wanted_token& want) const;
  /// What its choice depends on beside them. Valid until the next change.
  [[nodiscard]] sampling_state state(const step& plan, const wanted_token& want) const;

  /// Puts the chosen tokens (parallel to what list_wanted gave) and what they complete
  /// into the plan's result.
  void take(step& plan, std::span<sampled_token> chosen);

 private:
  /// What a slot's sequence needs beside its tokens.
  struct generation {
    request_id request;
    std::uint16_t sample = 0;
    sequence_text text;
  };

  void take_work(step& plan, std::uint32_t index, std::span<sampled_token> chosen);
  void take_token(step& plan, std::uint32_t index, std::uint16_t sample, generation& of,
                  const slot& state, sampled_token& chosen) const;
  [[nodiscard]] generation generation_of(const slot& state, std::uint16_t sample) const;

  tokenizer words_;
  generation_options options_;
  slot_table slots_;
  std::map<std::uint32_t, generation> texts_;
};

}  // namespace octavo::model
