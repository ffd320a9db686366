// Names of the log's small enumerations: see text.hpp.
#include "sim/replay/text.hpp"

namespace octavo::sim {

std::string_view name_of(input_kind kind) {
  switch (kind) {
    case input_kind::none:
      return "none";
    case input_kind::submit:
      return "submit";
    case input_kind::cancel:
      return "cancel";
    case input_kind::drain:
      return "drain";
    case input_kind::wake:
      return "wake";
    case input_kind::result:
      return "result";
  }
  return "unknown";
}

std::string_view name_of(finish_kind kind) {
  switch (kind) {
    case finish_kind::none:
      return "none";
    case finish_kind::eos:
      return "eos";
    case finish_kind::stop_token:
      return "stop_token";
    case finish_kind::stop_string:
      return "stop_string";
    case finish_kind::error:
      return "error";
  }
  return "unknown";
}

}  // namespace octavo::sim
