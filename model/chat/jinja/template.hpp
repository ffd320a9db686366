// A parsed template that can be rendered many times.
//
//   const jinja::compiled_template greeting("Hello {{ name }}!");
//   greeting.render({{"name", jinja::make_text("you", false)}}).text();   // Hello you!
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "model/chat/jinja/ast.hpp"
#include "model/chat/jinja/evaluator.hpp"

namespace octavo::model::jinja {

/// Immutable and cheap to copy; several threads may render at once.
class compiled_template {
 public:
  /// Throws input_error naming the line of what is malformed or not supported.
  explicit compiled_template(std::string_view source, const limits& allowed = {});

  /// The text, in which every byte knows whether it comes from the template or from a
  /// trusted text among `given`. `now_s` is what clocks on the wall show, as seconds
  /// since 1970-01-01 00:00; without it the template has no strftime_now. Throws
  /// input_error naming the line where the template cannot go on, or with the
  /// template's own words where it refuses.
  [[nodiscard]] marked_text render(const variables& given,
                                   std::optional<std::int64_t> now_s = std::nullopt) const;

 private:
  limits allowed_;
  std::shared_ptr<const statements> body_;
};

}  // namespace octavo::model::jinja
