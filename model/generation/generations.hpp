// What an executor that generates text knows of its sequences and does around the
// decoder, whatever device that runs on: it follows the plans, says which tokens are
// to be chosen from what, and turns chosen tokens into text and ends, so that a stop
// is a fact of the step.
//
//   generations all{words, groups, {.end_tokens = ends, .seed = 7}};
//   all.follow(*plan);
//   decoder_batch batch = batch_of(*plan, all.slots());
//   all.expect(*plan, wanted);
//   …                                    // logits, then one token for each of `wanted`
//   all.take(*plan, wanted, chosen);
//
// Between expect() and take() the next step may be followed: what its rows need of
// this step's tokens is unknown_token in its batch. Steps are taken in their order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

/// A token that a step shall choose. It keeps its sequence, which may have left its slot
/// when the token comes.
struct wanted_token {
  std::uint32_t work = 0;  ///< index in `step::work`
  std::uint16_t sample = 0;
  std::size_t row = 0;       ///< of the logits
  std::size_t position = 0;  ///< in its sequence
  std::shared_ptr<slot> sequence;
  std::shared_ptr<sequence_text> text;
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

  /// Fills `to` with the tokens that the plan's work wants, in its order, and keeps
  /// their places in their sequences.
  void expect(const step& plan, std::vector<wanted_token>& to);
  /// The parameters that a wanted token is chosen by.
  [[nodiscard]] static const sampling_parameters& sampling(const wanted_token& want);
  /// What its choice depends on beside them. Valid until the next change.
  [[nodiscard]] sampling_state state(const step& plan, const wanted_token& want) const;

  /// Puts the chosen tokens, parallel to `wanted`, and what they complete into the
  /// plan's result.
  void take(step& plan, std::span<const wanted_token> wanted, std::span<sampled_token> chosen);

 private:
  void take_token(step& plan, const wanted_token& want, sequence_text& text,
                  sampled_token& chosen) const;
  [[nodiscard]] sequence_text text_of(const slot& state, std::size_t tokens) const;

  tokenizer words_;
  generation_options options_;
  slot_table slots_;
  std::map<std::uint32_t, std::shared_ptr<sequence_text>> texts_;
};

}  // namespace octavo::model
