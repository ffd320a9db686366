// The text side of one running sequence: see sequence_text.hpp.
#include "model/tokenizer/sequence_text.hpp"

#include <algorithm>
#include <utility>

namespace octavo::model {

sequence_text::sequence_text(tokenizer words, const sampling_parameters& how,
                             std::span<const token_id> end_tokens)
    : decoder_(std::move(words), {.skip_special = how.skip_special_tokens}),
      stops_(how.stop),
      stop_tokens_(how.stop_token_ids),
      end_tokens_(how.ignore_eos ? std::span<const token_id>{} : end_tokens),
      include_stop_(how.include_stop_str_in_output),
      protected_tokens_(how.min_tokens) {
  // An empty string would be found before anything is said.
  std::erase(stops_, std::string{});
}

finish_kind sequence_text::push(token_id token, std::string& out) {
  held_ += decoder_.push(token);
  std::size_t earliest = std::string::npos;
  const bool may_stop = protected_tokens_ <= 0;
  if (!may_stop) --protected_tokens_;
  for (const std::string& stop : stops_) {
    if (!may_stop) break;
    const std::size_t at = held_.find(stop);
    if (at < earliest) {
      earliest = at;
      found_ = stop;
    }
  }
  if (earliest != std::string::npos) {
    out.append(held_, 0, earliest + (include_stop_ ? found_.size() : 0));
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

finish_kind sequence_text::take(token_id token, bool is_last, std::string& out) {
  finish_kind kind = kind_of(token);
  if (kind == finish_kind::none) {
    kind = push(token, out);
    if (kind == finish_kind::stop_string || !is_last) return kind;
  }
  finish(out);
  return kind;
}

finish_kind sequence_text::kind_of(token_id token) const {
  if (std::ranges::find(end_tokens_, token) != end_tokens_.end()) return finish_kind::eos;
  const bool stops = std::ranges::find(stop_tokens_, token) != stop_tokens_.end();
  return stops && protected_tokens_ <= 0 ? finish_kind::stop_token : finish_kind::none;
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

}  // namespace octavo::model
