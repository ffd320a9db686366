// See common_fields.hpp.
#include "web/gateway/api/common_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "web/gateway/api/json_text.hpp"

namespace octavo::api {
namespace {

using nlohmann::json;

constexpr std::size_t stop_bytes_max = 1024;
constexpr std::size_t listed_tokens_max = 1024;
constexpr std::size_t bad_words_max = 128;
constexpr std::size_t name_bytes_max = 512;

/// Of OpenAI's requests and vLLM's. A request without tools is the same whether or not its
/// calls could run in parallel; such fields accept every value.
constexpr std::array unsupported{
    neutral_field{"tools", "[[]]"},
    neutral_field{"parallel_tool_calls", "[true, false]"},
    neutral_field{"service_tier", R"(["auto", "default"])"},
    neutral_field{"store", "[false]"},
    neutral_field{"prompt_cache_retention", R"(["in_memory", "in-memory"])"},
    neutral_field{"prompt_cache_options", "[{}]"},
    neutral_field{"moderation"},
    neutral_field{"use_beam_search", "[false]"},
    neutral_field{"length_penalty", "[1]"},
    neutral_field{"spaces_between_special_tokens", "[true]"},
    neutral_field{"truncate_prompt_tokens"},
    neutral_field{"prompt_logprobs"},
    neutral_field{"structured_outputs"},
    neutral_field{"structural_tag"},
    neutral_field{"guided_json"},
    neutral_field{"guided_regex"},
    neutral_field{"guided_choice"},
    neutral_field{"guided_grammar"},
    neutral_field{"guided_decoding_backend"},
    neutral_field{"guided_whitespace_pattern"},
    neutral_field{"logits_processors", "[[]]"},
    neutral_field{"thinking_token_budget"},
    neutral_field{"repetition_detection"},
    neutral_field{"return_token_ids", "[false]"},
    neutral_field{"return_tokens_as_token_ids", "[false]"},
    neutral_field{"kv_transfer_params", "[{}]"},
    neutral_field{"vllm_xargs", "[{}]"},
    neutral_field{"mm_processor_kwargs", "[{}]"},
    neutral_field{"media_io_kwargs", "[{}]"},
    neutral_field{"request_id"},
    neutral_field{"data_parallel_rank"},
    neutral_field{"adapter"},
    neutral_field{"adapter_id"},
    neutral_field{"lora"},
    neutral_field{"lora_name"},
    neutral_field{"lora_path"},
    neutral_field{"lora_request"},
};

/// Names for the operator's books, which change no answer.
constexpr std::array<std::string_view, 2> bookkeeping{"safety_identifier", "prompt_cache_key"};

std::vector<std::string> read_texts(fields& body, std::string_view name, const json& list,
                                    std::size_t count_max, std::size_t bytes_max) {
  const std::string allowed = "a string or a list of at most " + std::to_string(count_max) +
                              " strings of 1 to " + std::to_string(bytes_max) + " bytes is allowed";
  const json one = json::array({list});
  const json& all = list.is_string() ? one : list;
  if (!all.is_array() || all.size() > count_max) body.fail_value(name, list, allowed);
  std::vector<std::string> texts;
  for (const json& text : all) {
    const auto* words = text.is_string() ? &text.get_ref<const std::string&>() : nullptr;
    if (words == nullptr || words->empty() || words->size() > bytes_max) {
      body.fail_value(name, list, allowed);
    }
    texts.push_back(*words);
  }
  return texts;
}

std::vector<std::pair<token_id, float>> read_logit_bias(fields& body, const limits& bounds) {
  const json* given = body.find("logit_bias");
  if (given == nullptr) return {};
  const std::string allowed = "an object of at most " + std::to_string(listed_tokens_max) +
                              " token ids from 0 to " + std::to_string(bounds.vocab_size - 1) +
                              " with numbers from -100 to 100 is allowed";
  if (!given->is_object() || given->size() > listed_tokens_max) {
    body.fail_value("logit_bias", *given, allowed);
  }
  std::vector<std::pair<token_id, float>> list;
  for (const auto& [key, bias] : given->items()) {
    token_id token = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    const bool known = error == std::errc{} && end == key.data() + key.size() && token >= 0 &&
                       token < bounds.vocab_size;
    const double value = bias.is_number() ? bias.get<double>() : 1000;
    if (!known || value < -100 || value > 100) {
      body.fail("logit_bias", "has " + shown(key) + ": " + shown(bias) + "; " + allowed);
    }
    list.emplace_back(token, static_cast<float>(value));
  }
  // "1" and "01" are one token; the order of tokens is the sampler's.
  std::ranges::sort(list);
  const auto twice = std::ranges::adjacent_find(list, {}, &std::pair<token_id, float>::first);
  if (twice != list.end()) {
    body.fail("logit_bias", "names token " + std::to_string(twice->first) + " twice");
  }
  return list;
}

void set(float& target, const std::optional<double>& value) {
  if (value) target = static_cast<float>(*value);
}

void read_shape_of_distribution(fields& body, sampling_parameters& s) {
  set(s.temperature, body.number("temperature", {0, 2}));
  // As with vLLM: what is as good as zero is greedy, and what is nearly zero would overflow.
  if (s.temperature >= 1e-5F) s.temperature = std::max(s.temperature, 1e-2F);
  set(s.top_p, body.number("top_p", {0, 1, true}));
  set(s.min_p, body.number("min_p", {0, 1}));
  if (const auto k = body.integer("top_k", -1, std::numeric_limits<std::int32_t>::max())) {
    s.top_k = static_cast<std::int32_t>(*k);
  }
  set(s.presence_penalty, body.number("presence_penalty", {-2, 2}));
  set(s.frequency_penalty, body.number("frequency_penalty", {-2, 2}));
  // Logits are divided by it: what is nearly zero would overflow.
  set(s.repetition_penalty, body.number("repetition_penalty", {0.01, 100}));
  if (const auto seed = body.integer("seed", std::numeric_limits<std::int64_t>::min(),
                                     std::numeric_limits<std::int64_t>::max())) {
    s.seed = *seed;
  }
}

void read_stops(fields& body, const limits& bounds, sampling_parameters& s) {
  if (const json* stop = body.find("stop")) {
    s.stop =
        read_texts(body, "stop", *stop, static_cast<std::size_t>(bounds.stops_max), stop_bytes_max);
  }
  s.stop_token_ids = body.tokens("stop_token_ids", bounds.vocab_size, listed_tokens_max);
  s.include_stop_str_in_output = body.flag("include_stop_str_in_output", false);
  s.skip_special_tokens = body.flag("skip_special_tokens", true);
  s.ignore_eos = body.flag("ignore_eos", false);
  s.min_tokens =
      static_cast<std::int32_t>(body.integer("min_tokens", 0, max_tokens_most).value_or(0));
}

void read_token_rules(fields& body, const limits& bounds, generation_request& request) {
  sampling_parameters& s = request.sampling;
  s.logit_bias = read_logit_bias(body, bounds);
  s.allowed_token_ids = body.tokens("allowed_token_ids", bounds.vocab_size,
                                    static_cast<std::size_t>(bounds.vocab_size));
  if (body.find("allowed_token_ids") != nullptr && s.allowed_token_ids.empty()) {
    body.fail("allowed_token_ids", "is empty, so that no token could be chosen");
  }
  const json* words = body.find("bad_words");
  if (words != nullptr) {
    request.bad_words = read_texts(body, "bad_words", *words, bad_words_max, stop_bytes_max);
  }
}

std::string read_name(fields& body, std::string_view name) {
  const auto text = body.text(name);
  if (text && text->size() > name_bytes_max) {
    body.fail(name, "has " + std::to_string(text->size()) + " bytes; up to " +
                        std::to_string(name_bytes_max) + " are allowed");
  }
  return text.value_or("");
}

void read_metadata(fields& body, generation_request& request) {
  const json* given = body.find("metadata");
  if (given == nullptr) return;
  const auto is_text = [](const json& value) {
    return value.is_string() && value.get_ref<const std::string&>().size() <= name_bytes_max;
  };
  if (!given->is_object() || given->size() > 16 || !std::ranges::all_of(*given, is_text)) {
    body.fail_value("metadata", *given,
                    "an object of at most 16 strings of up to 512 bytes is allowed");
  }
  request.metadata = *given;
}

}  // namespace

std::string read_model(fields& body, const limits& bounds) {
  const auto given = body.text("model");
  if (!given) return bounds.served_model_names.at(0);
  if (std::ranges::find(bounds.served_model_names, *given) == bounds.served_model_names.end()) {
    throw not_found(
        "model is " + shown(*given) + "; this server has " + shown(json(bounds.served_model_names)),
        "model", "model_not_found");
  }
  return *given;
}

void read_common(fields& body, const limits& bounds, generation_request& request) {
  request.model = read_model(body, bounds);
  request.sampling = bounds.default_sampling;
  read_shape_of_distribution(body, request.sampling);
  read_stops(body, bounds, request.sampling);
  read_token_rules(body, bounds, request);
  request.n = static_cast<std::int32_t>(body.integer("n", 1, bounds.samples_max).value_or(1));
  constexpr auto least = std::numeric_limits<std::int32_t>::min();
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  request.priority = static_cast<std::int32_t>(body.integer("priority", least, most).value_or(0));
  if (request.priority != 0 && !bounds.allows_priority) {
    body.fail("priority", "is " + std::to_string(request.priority) +
                              "; only 0 is allowed, as the server does not schedule by priority");
  }
  request.cache_salt = read_name(body, "cache_salt");
  if (body.find("cache_salt") != nullptr && request.cache_salt.empty()) {
    body.fail("cache_salt", "is empty; leave it out, or give at least one character");
  }
  request.user = read_name(body, "user");
  read_metadata(body, request);
  body.ignore(bookkeeping);
  body.refuse_unsupported(unsupported);
}

void read_stream(fields& body, generation_request& request) {
  request.stream = body.flag("stream", false);
  const json* given = body.find("stream_options");
  if (given == nullptr) return;
  if (!request.stream) body.fail("stream_options", "is only allowed where stream is true");
  fields options{*given, body.path("stream_options")};
  request.include_usage = options.flag("include_usage", false);
  // As with vLLM, it adds to include_usage and means nothing alone.
  request.continuous_usage = options.flag("continuous_usage_stats", false) && request.include_usage;
  // Padding against eavesdroppers: not given, and a client that asks must know.
  constexpr std::array padding{neutral_field{"include_obfuscation", "[false]"}};
  options.refuse_unsupported(padding);
  options.finish();
}

void check_common(const generation_request& request, const limits& bounds) {
  const std::int64_t sequences = std::ssize(request.prompts) * std::int64_t{request.n};
  if (sequences > bounds.sequences_max) {
    throw invalid_request("n", std::to_string(request.prompts.size()) +
                                   " prompts with n = " + std::to_string(request.n) + " give " +
                                   std::to_string(sequences) + " sequences; up to " +
                                   std::to_string(bounds.sequences_max) + " are allowed");
  }
  if (bounds.queued_prompts_max > 0 && std::ssize(request.prompts) > bounds.queued_prompts_max) {
    throw invalid_request("prompt", std::to_string(request.prompts.size()) +
                                        " prompts never fit in the queue; it holds " +
                                        std::to_string(bounds.queued_prompts_max) +
                                        " (--max-num-queued-reqs)");
  }
  if (request.max_tokens && request.sampling.min_tokens > *request.max_tokens) {
    throw invalid_request("min_tokens", "min_tokens is " +
                                            std::to_string(request.sampling.min_tokens) +
                                            "; up to max_tokens, which is " +
                                            std::to_string(*request.max_tokens) + ", is allowed");
  }
}

}  // namespace octavo::api
