// Why requests wait: see waiting_reasons.hpp.
#include "web/gateway/waiting_reasons.hpp"

#include <algorithm>

namespace octavo::gateway {

// A record explains the head of the queue, and perhaps some behind it. Of the others it
// gives only how many they are.
void waiting_reasons::on_record(const decision_record& record) {
  std::array<std::int64_t, reason_count> now{};
  std::int64_t explained = 0;
  for (const held_record& held : record.held) {
    if (held.why == reason::chunked_to_budget) continue;  // it runs
    ++now[index(held.why)];
    ++explained;
  }
  const std::int64_t waiting = explained == 0 ? 0 : record.behind + 1;
  now[index(reason::behind_head)] += std::max<std::int64_t>(0, waiting - explained);
  for (const reason why : all) counts_[index(why)].store(now[index(why)]);
}

}  // namespace octavo::gateway
