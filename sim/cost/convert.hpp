// Turns public sets of measurements into profiles of our own form.
#pragma once

#include <iosfwd>
#include <string>

#include "model/config.hpp"
#include "sim/cost/profile.hpp"

namespace octavo::sim {

/// The column layout of Vidur's tables, which Frontier shares: `time_stats.OP.median`
/// in milliseconds, one call in one layer, by num_tokens or by batch_size,
/// prefill_chunk_size and kv_cache_size; rows of several tensor-parallel degrees in
/// one file. Files may be gzip.
///
/// What becomes of it:
///   - writing K and V, where measured, is part of the attention tables;
///   - each chunk size has contexts of its own: they are brought onto one context
///     axis linearly, and beyond a chunk's longest context by the growth of smaller
///     chunks in proportion to the tokens;
///   - the set has no output head and no sampling: neither has the profile (the
///     provenance says so);
///   - with tp > 1, `all_reduce_csv` gives the two collectives of each layer.
///
/// Throws input_error where columns are missing or no row fits model and tp, and
/// where tp > 1 and there is no all-reduce table.
[[nodiscard]] profile convert_vidur(const std::string& mlp_csv, const std::string& attention_csv,
                                    const model::model_config& config, int tp,
                                    const std::string& gpu = "unnamed GPU",
                                    const std::string& all_reduce_csv = "");

/// LLMServingSim's layerwise vLLM profiles: PREFIX_dense.csv (layer,tokens,time_us),
/// PREFIX_attention.csv (prefill_chunk,kv_prefill,n_decode,kv_decode,time_us),
/// PREFIX_per_sequence.csv (layer,sequences,time_us) and, where it exists,
/// PREFIX_skew_fit.csv. `prefix` may also be a folder that holds these names
/// without a prefix.
///
/// How the layers add up to a step: in each layer twice `layernorm`, once
/// qkv_proj, rotary_emb, o_proj, gate_up_proj, act_fn and down_proj; once a step
/// embedding and final_layernorm; once a step, by sampled sequences, lm_head and
/// sampler. The skew fit's alpha is averaged per number of decodes, weighted by its
/// samples, over batches in which at most 70 % are long.
///
/// Only tp 1 is accepted: the set's collectives are simulated, not measured.
/// Throws input_error where files, columns or layers are missing.
[[nodiscard]] profile convert_llmservingsim(const std::string& prefix,
                                            const model::model_config& config, int tp,
                                            const std::string& gpu);

/// `octavo profile convert …`; argv[0] is the word "profile". Writes the profile to
/// --out and a summary to `out`; problems go to `err`. Returns the exit code.
int profile_command(int argc, char** argv, std::ostream& out, std::ostream& err);

}  // namespace octavo::sim
