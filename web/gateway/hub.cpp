// Requests under way: see hub.hpp.
#include "web/gateway/hub.hpp"

#include <algorithm>
#include <utility>

namespace octavo::gateway {
namespace {

std::string bytes_of(const model::tokenizer& words, token_id token) {
  return token >= 0 && token < words.vocab_size() ? std::string{words.piece(token)} : std::string{};
}

api::token_info info_of(const served_model& model, const generation& of, const token_event& token,
                        const token_logprobs& logprobs) {
  api::token_info info;
  info.id = token.token;
  info.logprob = logprobs.logprob;
  if (model.words != nullptr) {
    info.bytes = bytes_of(*model.words, token.token);
    info.in_text =
        !of.request.sampling.skip_special_tokens || !model.words->is_special(token.token);
  }
  for (const auto& [id, logprob] : logprobs.top) {
    info.top.push_back({id, model.words ? bytes_of(*model.words, id) : std::string{}, logprob});
  }
  return info;
}

}  // namespace

hub::hub(served_model model, engine_link& engine, hub_clocks clocks, metrics& counts,
         recorder* record, preparer* worker)
    : model_(std::move(model)),
      engine_(engine),
      clocks_(std::move(clocks)),
      counts_(counts),
      record_(record),
      worker_(worker) {}

std::uint64_t hub::start(api::generation_request request, make_listener make, refuser refuse) {
  auto of = std::make_unique<generation>();
  of->times.arrived_s = clocks_.seconds();
  if (request.wants_prompt_logprobs()) {
    throw api::invalid_request("logprobs",
                               "logprobs of an echoed prompt are not supported; leave echo or "
                               "logprobs out");
  }
  if (model_.words == nullptr) {
    throw api::server_error("the served model has no tokenizer");
  }
  const std::uint64_t number = next_number_++;
  if (worker_ != nullptr && api::prompt_bytes(request) >= long_prompt_bytes) {
    prepare_later(number, std::move(of), std::move(request),
                  {.make = std::move(make), .refuse = std::move(refuse)});
  } else {
    ready_request ready = prepare(std::move(request));
    live_.emplace(number, std::move(of));
    begin(number, std::move(ready), make);
  }
  return number;
}

hub::ready_request hub::prepare(api::generation_request request) const {
  ready_request ready{std::move(request), {}};
  ready.prompts = api::prepare(ready.request, *model_.words, model_.chat.get(), model_.limits,
                               clocks_.unix_seconds());
  return ready;
}

void hub::prepare_later(std::uint64_t number, std::unique_ptr<generation> of,
                        api::generation_request request, asker who) {
  const std::size_t bytes = api::prompt_bytes(request);
  // introduce() needs all but the prompts meanwhile.
  auto prompts = std::exchange(request.prompts, {});
  of->request = request;
  request.prompts = std::move(prompts);
  who.job = worker_->run(
      bytes, [this, request = std::move(request)]() mutable { return prepare(std::move(request)); },
      [this, number](outcome<ready_request> ready) { go_on(number, std::move(ready)); });
  if (record_ != nullptr) record_->starts(of->times.arrived_s);
  live_.emplace(number, std::move(of));
  preparing_.emplace(number, std::move(who));
}

void hub::go_on(std::uint64_t number, outcome<ready_request> ready) {
  if (const auto* why = std::get_if<api::api_error>(&ready)) return fail(number, *why);
  const auto who = preparing_.extract(number);
  begin(number, std::get<ready_request>(std::move(ready)), who.mapped().make);
}

void hub::begin(std::uint64_t number, ready_request ready, const make_listener& make) {
  generation& of = *live_.at(number);
  of.request = std::move(ready.request);
  of.prompts = std::move(ready.prompts);
  of.last_token.assign(of.prompts.size() * static_cast<std::size_t>(of.request.n), -1);
  if (const auto& how = of.request.sampling; !how.stop.empty()) {
    of.stop_search.assign(of.last_token.size(), {*model_.words, how});
  }
  const double now_s = clocks_.seconds();
  of.times.preparation_s = now_s - of.times.arrived_s;
  if (places_.empty()) heard_s_ = now_s;
  std::vector<request_spec> specs;
  for (std::size_t p = 0; p < of.prompts.size(); ++p) {
    const request_id id{next_id_++};
    of.ids.push_back(id);
    of.usage.prompt_tokens += std::ssize(*of.prompts[p].tokens);
    places_.emplace(id.raw(), place{number, p});
    specs.push_back(spec_of(of, p, id));
    if (record_ != nullptr) record_->arrived(specs.back(), of.times.arrived_s);
  }
  of.hears = make(of.ids.front(), of);
  of.hears->usage_so_far = &of.usage;
  counts_.started(of);
  engine_.submit(std::move(specs));
}

void hub::introduce(std::uint64_t number) {
  const auto who = preparing_.find(number);
  if (who == preparing_.end()) return;
  generation& of = *live_.at(number);
  of.hears = who->second.make(request_id{next_id_++}, of);
  of.hears->usage_so_far = &of.usage;
}

request_spec hub::spec_of(const generation& of, std::size_t prompt, request_id id) const {
  const api::prepared_prompt& p = of.prompts[prompt];
  request_spec spec;
  spec.id = id;
  spec.prompt = p.tokens;
  spec.prompt_tokens = token_count{static_cast<std::int32_t>(p.tokens->size())};
  spec.max_tokens = p.max_tokens;
  spec.priority = of.request.priority;
  spec.n = of.request.n;
  spec.announce = true;
  spec.sampling = std::make_shared<const sampling_parameters>(of.request.sampling);
  const block_hasher hasher{model_.secret};
  block_key key = hasher.root({.cache_salt = of.request.cache_salt});
  spec.root = key;
  const auto width = static_cast<std::size_t>(model_.block_size.raw());
  for (std::size_t at = 0; at + width <= p.tokens->size(); at += width) {
    spec.keys.push_back(key = hasher.chain(key, std::span{*p.tokens}.subspan(at, width)));
  }
  return spec;
}

void hub::cancel(std::uint64_t number) {
  const auto found = live_.find(number);
  if (found == live_.end()) return;
  for (const request_id id : found->second->ids) {
    if (places_.contains(id.raw())) engine_.cancel(id);
  }
  drop(number);
}

void hub::fail_all(const api::api_error& why) {
  while (!live_.empty()) fail(live_.begin()->first, why);
}

void hub::fail_preparing(const api::api_error& why) {
  while (!preparing_.empty()) fail(preparing_.begin()->first, why);
}

// The names go too: what the engine still tells of them is of no interest.
void hub::drop(std::uint64_t number) {
  const auto found = live_.find(number);
  for (const request_id id : found->second->ids) places_.erase(id.raw());
  const auto who = preparing_.extract(number);
  if (who) worker_->forget(who.mapped().job);
  // A listener may end the connection that owns it: it goes last.
  const auto keep = std::move(found->second);
  live_.erase(found);
}

void hub::fail(std::uint64_t number, const api::api_error& why) {
  const auto found = live_.find(number);
  if (found == live_.end()) return;
  generation& of = *found->second;
  for (const request_id id : of.ids) {
    if (places_.contains(id.raw())) engine_.cancel(id);
  }
  counts_.failed(of);
  if (of.hears != nullptr) {
    of.hears->failed(why);
  } else {
    preparing_.at(number).refuse(why);
  }
  drop(number);
}

bool hub::is_stuck(double limit_s) const {
  return !places_.empty() && clocks_.seconds() - heard_s_ > limit_s;
}

void hub::hear(const actors::event_batch& events) {
  heard_s_ = clocks_.seconds();
  counts_.heard(events, heard_s_);
  if (record_ != nullptr) record_->heard(events, heard_s_);
  for (const accepted_event& accepted : events.accepted) {
    const auto at = places_.find(accepted.request.raw());
    if (at == places_.end()) continue;
    generation& of = *live_.at(at->second.number);
    if (++of.accepted == std::ssize(of.prompts)) of.hears->accepted();
  }
  for (const token_event& token : events.tokens) hear_token(events, token);
  for (const finish_event& end : events.finishes) hear_finish(end);
}

void hub::hear_token(const actors::event_batch& events, const token_event& token) {
  const auto at = places_.find(token.request.raw());
  if (at == places_.end()) return;
  generation& of = *live_.at(at->second.number);
  const std::int32_t index = of.index_of(at->second.prompt, token.sample);
  if (of.usage.completion_tokens == 0) of.times.first_token_s = heard_s_;
  of.last_token[static_cast<std::size_t>(index)] = token.token;
  ++of.usage.completion_tokens;
  if (!of.stop_search.empty() && token.token >= 0) {
    std::string seen;
    of.stop_search[static_cast<std::size_t>(index)].push(token.token, seen);
  }
  if (of.request.only_echoes()) return;
  const std::string_view text =
      std::string_view{events.text}.substr(token.text_begin, token.text_size);
  if (token.logprobs < 0) {
    if (!text.empty()) of.hears->text(index, text, {});
    return;
  }
  const auto info =
      info_of(model_, of, token, events.logprobs[static_cast<std::size_t>(token.logprobs)]);
  of.hears->text(index, text, std::span{&info, 1});
}

void hub::hear_finish(const finish_event& end) {
  const auto at = places_.find(end.request.raw());
  if (at == places_.end()) return;
  const place where = at->second;
  generation& of = *live_.at(where.number);
  const bool good = end.why >= reason::finished_eos && end.why <= reason::finished_cancelled;
  if (end.request_done) {
    // Nothing of it lives in the engine any more: there is nothing to cancel.
    places_.erase(at);
  }
  if (!good) return fail(where.number, error_of(end.why, end.a, end.b));
  const std::int32_t index = of.index_of(where.prompt, end.sample);
  if (end.cached_tokens.raw() >= 0 && !of.scheduled) {
    of.scheduled = true;
    of.queued_s = of.times.preparation_s +
                  static_cast<double>((end.admitted_at - end.submitted_at).raw()) * 1e-6;
  }
  if (end.sample == 0) of.usage.cached_tokens += std::max(0, end.cached_tokens.raw());
  of.hears->ended(index, ending_of(end.why, of, index));
  if (end.request_done && ++of.done == std::ssize(of.prompts)) finish(where.number, of);
}

void hub::finish(std::uint64_t number, generation& of) {
  const double now = clocks_.seconds();
  if (of.request.only_echoes()) of.usage.completion_tokens = 0;
  api::answer_timings timings;
  timings.queue_ms = of.queued_s * 1e3;
  timings.ttft_ms = (of.times.first_token_s - of.times.arrived_s) * 1e3;
  timings.total_ms = (now - of.times.arrived_s) * 1e3;
  of.hears->done(of.usage, timings);
  drop(number);
}

}  // namespace octavo::gateway
