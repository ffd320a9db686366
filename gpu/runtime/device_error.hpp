// The error of everything that a device can refuse.
#pragma once

#include <stdexcept>
#include <string>

namespace octavo::gpu {

/// A call on a device failed. The message names the call, the device (-1: none yet), what
/// went wrong, and what can be done about it.
struct device_error : std::runtime_error {
  device_error(std::string call_, int device_, const std::string& problem, std::string advice_)
      : std::runtime_error((device_ < 0 ? "" : "device " + std::to_string(device_) + ": ") + call_ +
                           ": " + problem + (advice_.empty() ? "" : "\n  " + advice_)),
        call(std::move(call_)),
        device(device_),
        advice(std::move(advice_)) {}

  std::string call;
  int device;
  std::string advice;
};

}  // namespace octavo::gpu
