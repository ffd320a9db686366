// Which instructions the kernels use: chosen once, at run time, so that one
// binary runs on any machine. The environment variable OCTAVO_CPU_ISA
// (portable, avx2, avx512-vnni) asks for less than the machine has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::cpu {

enum class isa {
  /// Plain C++.
  portable,
  /// AVX2, FMA and F16C.
  avx2,
  /// The above with AVX-512 F, BW, DQ, VL and VNNI.
  avx512_vnni,
};

[[nodiscard]] std::string_view to_string(isa kind);

/// What this build and this machine can run, slowest first; never empty.
[[nodiscard]] const std::vector<isa>& available_isas();

/// The choice for a value of OCTAVO_CPU_ISA; the best one where it is empty.
/// Throws input_error for an unknown name and for what is not available here.
[[nodiscard]] isa choose_isa(const std::string& name);

/// choose_isa of the environment, decided at the first call.
[[nodiscard]] isa active_isa();

}  // namespace octavo::cpu
