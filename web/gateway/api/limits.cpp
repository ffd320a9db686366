// See limits.hpp.
#include "web/gateway/api/limits.hpp"

namespace octavo::api {

sampling_parameters default_sampling(const model::generation_config& config) {
  sampling_parameters defaults;
  if (config.temperature) defaults.temperature = static_cast<float>(*config.temperature);
  if (config.top_p) defaults.top_p = static_cast<float>(*config.top_p);
  if (config.top_k) defaults.top_k = static_cast<std::int32_t>(*config.top_k);
  if (config.repetition_penalty) {
    defaults.repetition_penalty = static_cast<float>(*config.repetition_penalty);
  }
  return defaults;
}

}  // namespace octavo::api
