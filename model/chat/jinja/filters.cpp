// See filters.hpp.
#include "model/chat/jinja/filters.hpp"

#include <algorithm>

#include "model/chat/jinja/filter_tables.hpp"

namespace octavo::model::jinja {

value filtered(std::string_view filter, const value& input, const arguments& given, budget& work) {
  for (const auto family :
       {text_filters(), number_filters(), sequence_filters(), selecting_filters()}) {
    const auto found = std::ranges::find(family, filter, &builtin_filter::name);
    if (found != family.end()) return found->run(input, given, work);
  }
  throw operation_error("there is no filter '" + std::string(filter) + "'");
}

}  // namespace octavo::model::jinja
