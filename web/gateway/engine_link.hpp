// What the gateway needs of an engine. Everything is asked and answered on the
// network thread; the other side may be actors, or a test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "core/request.hpp"

namespace octavo::gateway {

class engine_link {
 public:
  virtual ~engine_link() = default;

  /// Requests of one moment. Their events come to hub::hear.
  virtual void submit(std::vector<request_spec> requests) = 0;
  virtual void cancel(request_id id) = 0;
  /// No request is accepted any more.
  virtual void drain() = 0;
  /// Answers with the replicas' statistics, or none where the engine does not answer in
  /// time.
  virtual void ask_statistics(std::function<void(const actors::statistics_list&)> answer) = 0;
  /// Answers with the text of what happened to a request, and why; empty where it is not
  /// remembered.
  virtual void ask_explanation(request_id id, std::function<void(std::string)> answer) = 0;
};

}  // namespace octavo::gateway
