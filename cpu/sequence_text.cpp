// The text side of one running sequence: see sequence_text.hpp.
#include "cpu/sequence_text.hpp"

#include <algorithm>

namespace octavo::cpu {

sequence_text::sequence_text(const model::tokenizer& words, const sampling_parameters& how)
    : decoder_(words, {.skip_special = how.skip_special_tokens}),
      stops_(how.stop),
      include_stop_(how.include_stop_str_in_output),
      protected_tokens_(how.min_tokens) {
  // An empty string would be found before anything is said.
  std::erase(stops_, std::string{});
}

finish_kind sequence_text::push(token_id token, std::string& out) {
  held_ += decoder_.push(token);
  std::size_t earliest = std::string::npos;
  std::size_t length = 0;
  const bool may_stop = protected_tokens_ <= 0;
  if (!may_stop) --protected_tokens_;
  for (const std::string& stop : stops_) {
    if (!may_stop) break;
    const std::size_t at = held_.find(stop);
    if (at < earliest) {
      earliest = at;
      length = stop.size();
    }
  }
  if (earliest != std::string::npos) {
    out.append(held_, 0, earliest + (include_stop_ ? length : 0));
    held_.clear();
    return finish_kind::stop_string;
  }
  const std::size_t certain = possible_stop_start();
  out.append(held_, 0, certain);
  held_.erase(0, certain);
  return finish_kind::none;
}

void sequence_text::finish(std::string& out) {
  held_ += decoder_.flush();
  out += held_;
  held_.clear();
}

// Where the longest ending begins that is the beginning of a stop string.
std::size_t sequence_text::possible_stop_start() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, held_.size()); size > longest; --size) {
      if (held_.ends_with(std::string_view{stop}.substr(0, size))) longest = size;
    }
  }
  return held_.size() - longest;
}

}  // namespace octavo::cpu
