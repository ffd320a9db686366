// See template.hpp.
#include "model/chat/jinja/template.hpp"

#include "model/chat/jinja/parser.hpp"

namespace octavo::model::jinja {

compiled_template::compiled_template(std::string_view source, const limits& allowed)
    : allowed_(allowed), body_(std::make_shared<const statements>(parse(source, allowed))) {}

marked_text compiled_template::render(const variables& given,
                                      std::optional<std::int64_t> now_s) const {
  return evaluator(given, now_s, allowed_).run(*body_);
}

}  // namespace octavo::model::jinja
