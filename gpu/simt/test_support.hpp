// Runs one kernel of a test on arrays of the host. Tests only.
#pragma once

#include <string>
#include <vector>

#include "gpu/ptx.h"
#include "gpu/runtime/launch.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/simt/counters.hpp"
#include "gpu/simt/schedules.hpp"

namespace octavo::gpu::simt {

/// Launches kernel(in, out) and returns the `n_out` values that it left.
template <class In, class Out>
std::vector<Out> run_kernel(const launch_shape& shape, void (*kernel)(const In*, Out*),
                            const std::vector<In>& in, std::size_t n_out) {
  stream s;
  device_array<In> input(in.size());
  device_array<Out> output(n_out);
  input.upload(s, in);
  output.fill_zero(s);
  launch(s, shape, kernel, input.data(), output.data());
  std::vector<Out> out(n_out);
  output.download(s, out);
  s.synchronize();
  return out;
}

/// The message of the device_error that `action` throws, or an empty string.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const device_error& e) {
    return e.what();
  }
  return "";
}

/// The names of the schedules under which `correct()` is false.
template <class Correct>
std::vector<std::string> schedules_that_fail(Correct&& correct) {
  std::vector<std::string> failing;
  for_each_schedule([&](const char* name) {
    if (!correct()) failing.emplace_back(name);
  });
  return failing;
}

}  // namespace octavo::gpu::simt
