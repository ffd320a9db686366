// The engine's actors as the gateway sees them: see actor_link.hpp.
#include "web/gateway/actor_link.hpp"

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace octavo::gateway {
namespace {

/// An engine that does not answer a question in this time is busy or gone.
constexpr std::chrono::seconds answer_timeout{5};

class listening_sink final : public actors::sink_actor::base {
 public:
  listening_sink(caf::actor_config& config, std::function<void(actors::event_batch_ptr)> hear)
      : actors::sink_actor::base(config), hear_(std::move(hear)) {}

  behavior_type make_behavior() override {
    return {[this](actors::events_atom, const actors::event_batch_ptr& events) { hear_(events); }};
  }

 private:
  std::function<void(actors::event_batch_ptr)> hear_;
};

// Asks one question and ends with the answer, or when there is none.
template <class Answer, class... Question>
void ask(caf::actor_system& system, const actors::engine_actor& engine,
         std::function<void(Answer)> answer, Question... question) {
  system.spawn([=](caf::event_based_actor* self) {
    self->request(engine, answer_timeout, question...)
        .then([=](const Answer& value) { answer(value); }, [=](const caf::error&) { answer({}); });
  });
}

}  // namespace

actor_link::actor_link(caf::actor_system& system, actors::engine_actor engine,
                       std::vector<caf::actor_addr> parts, link_ears ears)
    : system_(system), engine_(std::move(engine)), ears_(std::move(ears)) {
  sink_ = system_.spawn<listening_sink>(ears_.hear);
  watcher_ = system_.spawn([parts = std::move(parts), tell = ears_.engine_failed](
                               caf::event_based_actor* self) -> caf::behavior {
    for (const caf::actor_addr& part : parts) {
      // An engine that ends at once may be gone before this runs.
      const auto alive = caf::actor_cast<caf::strong_actor_ptr>(part);
      if (alive) self->monitor(part);
    }
    self->set_down_handler([=](const caf::down_msg& down) {
      tell(self->system().render(down.reason));
      self->quit();
    });
    return {[](caf::unit_t) {}};
  });
}

actor_link::~actor_link() {
  caf::anon_send_exit(watcher_, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(sink_, caf::exit_reason::user_shutdown);
}

void actor_link::submit(std::vector<request_spec> requests) {
  caf::anon_send(engine_, actors::submit_atom::value,
                 std::make_shared<std::vector<request_spec>>(std::move(requests)), sink_);
}

void actor_link::cancel(request_id id) {
  caf::anon_send(engine_, actors::cancel_atom::value, id.raw());
}

void actor_link::drain() {
  caf::anon_send(engine_, actors::drain_atom::value);
}

void actor_link::ask_statistics(std::function<void(const actors::statistics_list&)> answer) {
  ask<actors::statistics_list>(
      system_, engine_,
      [post = ears_.post, answer = std::move(answer)](actors::statistics_list all) {
        post([answer, all = std::move(all)] { answer(all); });
      },
      actors::statistics_atom::value);
}

void actor_link::ask_explanation(request_id id, std::function<void(std::string)> answer) {
  ask<std::string>(
      system_, engine_,
      [post = ears_.post, answer = std::move(answer)](std::string text) {
        post([answer, text = std::move(text)] { answer(text); });
      },
      actors::explain_atom::value, id.raw());
}

}  // namespace octavo::gateway
