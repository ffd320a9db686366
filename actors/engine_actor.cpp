// The front door: see engine_actor.hpp.
#include "actors/engine_actor.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <caf/response_promise.hpp>
#include <caf/send.hpp>

namespace octavo::actors {
namespace {

constexpr auto answer_timeout = std::chrono::seconds{10};
/// For each replica, as many as its scheduler explains.
constexpr std::size_t former_homes_max = 1000;

}  // namespace

engine_shell::engine_shell(caf::actor_config& config, router_kind kind,
                           std::vector<scheduler_actor> replicas, route_observer* observer)
    : ordered_actor<engine_actor::base>(config),
      router_(kind, static_cast<std::uint32_t>(replicas.size())),
      replicas_(std::move(replicas)),
      observer_(observer),
      parts_(replicas_.size()) {}

engine_actor::behavior_type engine_shell::make_behavior() {
  return {
      [this](submit_atom, const submit_batch& batch, const sink_actor& sink) {
        if (replicas_.size() == 1) {
          send(replicas_.front(), submit_atom::value, batch, sink);
        } else {
          route_batch(batch, sink);
        }
      },
      [this](cancel_atom, std::uint64_t id) {
        if (const auto* home = home_of(id)) send(*home, cancel_atom::value, id);
      },
      [this](drain_atom) {
        for (const auto& replica : replicas_) send(replica, drain_atom::value);
      },
      [this](events_atom, const event_batch_ptr& batch) { pass_on(batch); },
      [this](statistics_atom) -> caf::result<statistics_list> {
        auto promise = make_response_promise<statistics_list>();
        auto gathered = std::make_shared<statistics_list>(replicas_.size());
        auto missing = std::make_shared<std::size_t>(replicas_.size());
        for (std::size_t i = 0; i < replicas_.size(); ++i) {
          request(replicas_[i], answer_timeout, statistics_atom::value)
              .then(
                  [=](const scheduler_statistics& one) mutable {
                    (*gathered)[i] = one;
                    if (--*missing == 0) promise.deliver(*gathered);
                  },
                  [=](caf::error& problem) mutable { promise.deliver(problem); });
        }
        return promise;
      },
      [this](explain_atom, std::uint64_t id) -> caf::result<std::string> {
        auto promise = make_response_promise<std::string>();
        request(who_explains(id), answer_timeout, explain_atom::value, id)
            .then([=](const std::string& text) mutable { promise.deliver(text); },
                  [=](caf::error& problem) mutable { promise.deliver(problem); });
        return promise;
      },
  };
}

const scheduler_actor* engine_shell::home_of(std::uint64_t id) const {
  if (replicas_.size() == 1) return &replicas_.front();
  const std::uint32_t replica = router_.replica_of(request_id{id});
  return replica < replicas_.size() ? &replicas_[replica] : nullptr;
}

// A scheduler that never heard of the request says so.
const scheduler_actor& engine_shell::who_explains(std::uint64_t id) const {
  if (const auto* home = home_of(id)) return *home;
  const auto former = former_home_.find(id);
  return replicas_[former == former_home_.end() ? 0 : former->second];
}

void engine_shell::remember_home(std::uint64_t id, std::uint32_t replica) {
  if (!former_home_.insert_or_assign(id, replica).second) return;
  former_order_.push_back(id);
  if (former_order_.size() > former_homes_max * replicas_.size()) {
    former_home_.erase(former_order_.front());
    former_order_.pop_front();
  }
}

void engine_shell::on_exit() {
  replicas_.clear();
  sinks_.clear();
}

std::size_t engine_shell::sink_number(const sink_actor& sink) {
  const auto found = std::ranges::find(sinks_, sink);
  const auto number = static_cast<std::size_t>(found - sinks_.begin());
  if (found == sinks_.end()) sinks_.push_back(sink);
  return number;
}

void engine_shell::route_batch(const submit_batch& batch, const sink_actor& sink) {
  const std::size_t number = sink_number(sink);
  for (request_spec& spec : *batch) {
    sink_of_[spec.id.raw()] = number;
    const route chosen = router_.choose(spec);
    if (observer_ != nullptr) observer_->on_route(spec.id, chosen);
    submit_batch& part = parts_[chosen.replica];
    if (part == nullptr) part = std::make_shared<std::vector<request_spec>>();
    part->push_back(std::move(spec));
  }
  const sink_actor here = caf::actor_cast<sink_actor>(this);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i] == nullptr) continue;
    send(replicas_[i], submit_atom::value, std::move(parts_[i]), here);
    parts_[i] = nullptr;
  }
}

void engine_shell::pass_on(const event_batch_ptr& batch) {
  for (std::size_t number = 0; number < sinks_.size(); ++number) {
    if (sinks_.size() == 1) {
      send(sinks_.front(), events_atom::value, batch);
      break;
    }
    auto part = std::make_shared<event_batch>(*batch);
    const auto foreign = [&](const auto& e) {
      const auto found = sink_of_.find(e.request.raw());
      return found == sink_of_.end() || found->second != number;
    };
    std::erase_if(part->accepted, foreign);
    std::erase_if(part->tokens, foreign);
    std::erase_if(part->finishes, foreign);
    if (part->accepted.empty() && part->tokens.empty() && part->finishes.empty()) continue;
    send(sinks_[number], events_atom::value, event_batch_ptr{std::move(part)});
  }
  for (const finish_event& end : batch->finishes) {
    if (!end.request_done) continue;
    router_.finished(end.request);
    remember_home(end.request.raw(), batch->replica);
    sink_of_.erase(end.request.raw());
  }
}

}  // namespace octavo::actors
