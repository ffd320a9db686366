// Following the plans: see slot_table.hpp.
#include "model/generation/slot_table.hpp"

namespace octavo::model {

slot& slot_table::open(std::uint32_t index) {
  if (index >= slots_.size()) slots_.resize(index + 1U);
  slots_[index] = std::make_shared<slot>();
  return *slots_[index];
}

void slot_table::follow(const step& plan) {
  for (const fork_command& fork : plan.forks) {
    open(fork.child_slot);
    const slot& parent = at(fork.parent_slot);
    slot& child = at(fork.child_slot);
    child.request = parent.request;
    child.prompt_tokens = parent.prompt_tokens;
    child.end_tokens = parent.end_tokens;
    child.sampling = parent.sampling;
    child.tokens.assign(parent.tokens.begin(),
                        parent.tokens.begin() + static_cast<std::ptrdiff_t>(parent.prompt_tokens));
    child.tables[0].assign(parent.tables[0].begin(), parent.tables[0].begin() + fork.shared_blocks);
  }
  for (const admission_command& admission : plan.admissions) {
    slot& opened = open(admission.slot);
    opened.request = admission.request;
    opened.sample = admission.sample;
    opened.prompt_tokens = static_cast<std::size_t>(admission.prompt_tokens.raw());
    opened.end_tokens = static_cast<std::size_t>(admission.end_tokens.raw());
    opened.sampling = admission.sampling;
    const auto first = plan.admitted_tokens.begin() + admission.tokens_begin;
    opened.tokens.assign(first, first + admission.query_tokens.raw());
    const auto hits = plan.hits.begin() + admission.hits_begin;
    opened.tables[0].assign(hits, hits + admission.hits_count);
  }
  for (const table_change& change : plan.table_changes) {
    slot& changed = at(change.slot);
    auto& table = changed.tables[change.group];
    table.erase(table.begin(), table.begin() + change.dropped);
    changed.first[change.group] +=
        static_cast<std::int32_t>(change.dropped) / groups_[change.group].pool_blocks;
    const auto begin = plan.new_blocks.begin() + change.begin;
    table.insert(table.end(), begin, begin + change.count);
  }
  for (const sequence_work& work : plan.work) {
    slot& running = at(work.slot);
    running.sample = work.sample;
    // A forked sample's first token, and whatever else is not known here yet.
    const auto end = static_cast<std::size_t>(work.first_position.raw() + work.count.raw());
    for (std::size_t at = running.tokens.size(); at < end; ++at) {
      const std::size_t offset = at - static_cast<std::size_t>(work.first_position.raw());
      running.tokens.push_back(plan.tokens[work.tokens_begin + offset]);
    }
  }
}

}  // namespace octavo::model
