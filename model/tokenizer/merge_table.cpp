// Filling the merge table.
#include "model/tokenizer/merge_table.hpp"

#include <algorithm>
#include <bit>

namespace octavo::model {

merge_table::merge_table(std::size_t rules)
    : entries_(std::bit_ceil(std::max<std::size_t>(16, rules * 2)), entry{empty_key, {}}),
      mask_(entries_.size() - 1) {}

void merge_table::insert(token_id left, token_id right, merge_rule rule) {
  if ((size_ + 1) * 3 > entries_.size() * 2) grow();
  const std::uint64_t key = key_of(left, right);
  std::size_t at = home_of(key);
  while (entries_[at].key != key && entries_[at].key != empty_key) at = (at + 1) & mask_;
  if (entries_[at].key == empty_key) ++size_;
  entries_[at] = {key, rule};
}

void merge_table::grow() {
  std::vector<entry> old(entries_.size() * 2, entry{empty_key, {}});
  old.swap(entries_);
  mask_ = entries_.size() - 1;
  for (const entry& used : old) {
    if (used.key == empty_key) continue;
    std::size_t at = home_of(used.key);
    while (entries_[at].key != empty_key) at = (at + 1) & mask_;
    entries_[at] = used;
  }
}

}  // namespace octavo::model
