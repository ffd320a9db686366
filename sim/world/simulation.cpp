// Building and driving the simulated world: see simulation.hpp.
#include "sim/world/simulation.hpp"

#include <stdexcept>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actors/engine_actor.hpp"
#include "actors/replica.hpp"

namespace octavo::sim {
namespace {

// The router's decisions, chained like the replicas'.
class route_log final : public actors::route_observer {
 public:
  explicit route_log(std::string_view header) : chain_(chain_of_header(header)) {}

  void on_route(request_id id, const route& chosen) override {
    out_.clear();
    out_.put(id.raw());
    out_.put(chosen.replica);
    out_.put(static_cast<std::uint64_t>(chosen.why));
    out_.put(chosen.matched_blocks);
    chain_ = chain_next(chain_, out_.bytes());
  }
  [[nodiscard]] const hash128& chain() const { return chain_; }

 private:
  byte_writer out_;
  hash128 chain_;
};

class world {
 public:
  explicit world(const simulation_options& options)
      : options_(options),
        work_(std::make_shared<workload>(options.trace, options.work, options.engine)),
        routes_(to_string(options.router)),
        system_(configured()),
        coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
        clock_(coordinator_.clock().now()) {
    for (std::uint32_t i = 0; i < options.replicas; ++i) add_replica(i);
    std::vector<actors::scheduler_actor> schedulers;
    for (const actors::replica& r : replicas_) schedulers.push_back(r.scheduler);
    engine_ = system_.spawn<actors::engine_shell>(options.router, std::move(schedulers), &routes_);
    source_ =
        system_.spawn<workload_source>(work_, clock_, options.replicas, outcome_, options.progress);
  }

  ~world() { stop(); }

  simulation_outcome run() {
    caf::anon_send(source_, start_atom::value, engine_);
    do {
      coordinator_.run();
    } while (coordinator_.trigger_timeout());
    collect();
    return std::move(outcome_);
  }

 private:
  caf::actor_system_config& configured() {
    config_.set("scheduler.policy", caf::atom("testing"));
    config_.set("logger.inline-output", true);
    return config_;
  }

  void add_replica(std::uint32_t index) {
    const engine_config& engine = options_.engine;
    const std::string header = to_json(engine);
    auto log = std::make_shared<decision_log>(header);
    if (!options_.decision_log && options_.log_file == nullptr) log->disable();
    if (options_.log_file != nullptr) log->set_sink(options_.log_file->replica(index, header));
    logs_.push_back(log);
    actors::scheduler_setup setup;
    setup.config = engine;
    setup.replica = index;
    setup.clock = clock_;
    setup.log = std::move(log);
    setup.explained_requests = 0;
    if (index == 0) setup.observers = options_.observers;
    if (options_.observe) {
      if (decision_observer* observer = options_.observe(index))
        setup.observers.push_back(observer);
    }
    const auto executor =
        system_.spawn<simulated_executor>(options_.cost, work_->oracle(), engine.run_ahead > 0);
    replicas_.push_back(actors::spawn_replica(system_, std::move(setup), executor));
  }

  // Asks the engine's actors for their sums, in virtual time as everything else.
  void collect() {
    caf::scoped_actor self{system_};
    for (const actors::replica& r : replicas_) {
      auto statistics = self->request(r.scheduler, caf::infinite, actors::statistics_atom::value);
      coordinator_.run();
      statistics.receive([&](const scheduler_statistics& s) { add(s); },
                         [](const caf::error&) { throw std::logic_error("a scheduler is gone"); });
      auto cache = self->request(r.blocks, caf::infinite, actors::statistics_atom::value);
      coordinator_.run();
      cache.receive(
          [&](const cache_statistics& c) {
            outcome_.query_tokens += c.query_tokens;
            outcome_.hit_tokens += c.hit_tokens;
          },
          [](const caf::error&) { throw std::logic_error("a block manager is gone"); });
    }
    outcome_.decision_log_kept = options_.decision_log;
    if (options_.decision_log) outcome_.decision_log_hash = total_hash();
  }

  void add(const scheduler_statistics& s) {
    outcome_.steps += s.steps;
    outcome_.preemptions += s.preemptions;
    outcome_.generated_tokens += s.generated_tokens;
    outcome_.wasted_tokens += s.wasted_tokens;
    outcome_.blocks_total += s.blocks_total;
  }

  [[nodiscard]] hash128 total_hash() const {
    byte_writer all;
    for (const auto& log : logs_) {
      all.put_fixed64(log->chain().lo);
      all.put_fixed64(log->chain().hi);
    }
    if (replicas_.size() > 1) {
      all.put_fixed64(routes_.chain().lo);
      all.put_fixed64(routes_.chain().hi);
    }
    return siphash128({}, all.bytes());
  }

  void stop() {
    caf::anon_send_exit(source_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(engine_, caf::exit_reason::user_shutdown);
    for (const actors::replica& r : replicas_) actors::stop_replica(r);
    coordinator_.run();
  }

  const simulation_options& options_;
  std::shared_ptr<const workload> work_;
  simulation_outcome outcome_;
  route_log routes_;
  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& coordinator_;
  actors::engine_clock clock_;
  std::vector<std::shared_ptr<decision_log>> logs_;
  std::vector<actors::replica> replicas_;
  actors::engine_actor engine_;
  source_actor source_;
};

}  // namespace

simulation_outcome simulate(const simulation_options& options) {
  validate(options.engine);
  // Refused here: once actors run, a constructor that throws would wait for them.
  static_cast<void>(router{options.router, options.replicas});
  return world{options}.run();
}

}  // namespace octavo::sim
