// Names and sentences of reasons: see reason.hpp.
#include "core/reason.hpp"

namespace octavo {

std::string_view to_string(reason why) {
  switch (why) {
    case reason::admitted:
      return "admitted";
    case reason::prefix_hit:
      return "prefix_hit";
    case reason::resumed:
      return "resumed";
    case reason::chunked_to_budget:
      return "chunked_to_budget";
    case reason::no_budget:
      return "no_budget";
    case reason::batch_full:
      return "batch_full";
    case reason::no_free_blocks:
      return "no_free_blocks";
    case reason::preemption_hold:
      return "preemption_hold";
    case reason::watermark_hold:
      return "watermark_hold";
    case reason::behind_head:
      return "behind_head";
    case reason::waiting_for_batch:
      return "waiting_for_batch";
    case reason::static_batch_running:
      return "static_batch_running";
    case reason::preempted_for:
      return "preempted_for";
    case reason::finished_eos:
      return "finished{eos}";
    case reason::finished_stop:
      return "finished{stop}";
    case reason::finished_length:
      return "finished{length}";
    case reason::finished_kv_exhausted:
      return "finished{kv_exhausted}";
    case reason::finished_cancelled:
      return "finished{cancelled}";
    case reason::finished_error:
      return "finished{error}";
    case reason::finished_executor_failed:
      return "finished{executor_failed}";
    case reason::rejected_never_fits:
      return "rejected{never_fits}";
    case reason::rejected_too_long:
      return "rejected{too_long}";
    case reason::rejected_queue_full:
      return "rejected{queue_full}";
    case reason::rejected_draining:
      return "rejected{draining}";
    case reason::rejected_invalid:
      return "rejected{invalid}";
    case reason::routed:
      return "routed";
  }
  return "unknown";
}

namespace {

std::string waiting_sentence(reason why, const std::string& a, const std::string& b) {
  switch (why) {
    case reason::no_budget:
      return "Waits: this step's token budget is used up.";
    case reason::batch_full:
      return "Waits: " + a + " sequences run, the most that may run at once is " + b + ".";
    case reason::no_free_blocks:
      return "Waits: it needs " + a + " KV blocks and " + b + " are free.";
    case reason::preemption_hold:
      return "Waits: in this step " + a + " had to give blocks back; nobody is let in beside that.";
    case reason::watermark_hold:
      return "Waits: its " + a + " blocks would leave fewer free than the watermark; " + b +
             " are free.";
    case reason::behind_head:
      return "Waits: it stands behind request " + a + " in the queue.";
    case reason::waiting_for_batch:
      return "Waits: the static batch has " + a + " of " + b + " requests and is still filling.";
    case reason::static_batch_running:
      return "Waits: a static batch of " + a + " runs until its longest request ends.";
    default:
      return {};
  }
}

std::string ending_sentence(reason why, const std::string& a, const std::string& b) {
  switch (why) {
    case reason::finished_eos:
      return "Finished: the model ended the text.";
    case reason::finished_stop:
      return "Finished: a stop token or stop string was met.";
    case reason::finished_length:
      return "Finished: it reached its limit of tokens.";
    case reason::finished_kv_exhausted:
      return "Finished early: alone in the pool, it could not grow beyond the KV memory.";
    case reason::finished_cancelled:
      return "Ended: the client cancelled it.";
    case reason::finished_error:
      return "Ended: the executor reported an error for it.";
    case reason::finished_executor_failed:
      return "Ended: the executor failed in its step.";
    case reason::rejected_never_fits:
      return "Rejected: it needs " + a + " KV blocks and the whole pool has " + b + ".";
    case reason::rejected_too_long:
      return "Rejected: prompt and output come to " + a +
             " tokens; the most allowed (max-model-len) is " + b + ".";
    case reason::rejected_queue_full:
      return "Rejected: the queue holds " + a + ", its limit is " + b + ".";
    case reason::rejected_draining:
      return "Rejected: the engine is draining.";
    case reason::rejected_invalid:
      return "Rejected: a field of the request is out of range.";
    default:
      return {};
  }
}

}  // namespace

std::string sentence(reason why, std::int64_t a, std::int64_t b) {
  const std::string first = std::to_string(a);
  const std::string second = std::to_string(b);
  switch (why) {
    case reason::admitted:
      return "Admitted: there is budget, a slot and memory.";
    case reason::prefix_hit:
      return "Admitted with " + first + " tokens already in the prefix cache.";
    case reason::resumed:
      return "Resumed after preemption, " + first + " tokens found in the prefix cache.";
    case reason::chunked_to_budget:
      return "Ran " + first + " tokens, cut to this step's budget; " + second + " are left.";
    case reason::preempted_for:
      return "Preempted: its blocks were needed for request " + first + ".";
    case reason::routed:
      return "Routed to replica " + first + ".";
    default:
      break;
  }
  return is_finish(why) ? ending_sentence(why, first, second)
                        : waiting_sentence(why, first, second);
}

}  // namespace octavo
