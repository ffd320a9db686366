// Asks the processor and the operating system what they support.
#include "cpu/kernels/isa.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"
#include "cpu/kernels/kernel_table.hpp"

namespace octavo::cpu {
namespace {

bool machine_has(isa kind) {
#if defined(__x86_64__) || defined(__i386__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("f16c");
  const bool has_vnni = has_avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  if (kind == isa::avx2) return has_avx2;
  if (kind == isa::avx512_vnni) return has_vnni;
#endif
  return kind == isa::portable;
}

const kernel_table* table_of(isa kind) {
  switch (kind) {
    case isa::avx2:
      return avx2_kernels();
    case isa::avx512_vnni:
      return avx512_vnni_kernels();
    case isa::portable:
      break;
  }
  return portable_kernels();
}

}  // namespace

std::string_view to_string(isa kind) {
  switch (kind) {
    case isa::avx2:
      return "avx2";
    case isa::avx512_vnni:
      return "avx512-vnni";
    case isa::portable:
      break;
  }
  return "portable";
}

const std::vector<isa>& available_isas() {
  static const std::vector<isa> available = [] {
    std::vector<isa> found;
    for (const isa kind : {isa::portable, isa::avx2, isa::avx512_vnni}) {
      if (table_of(kind) != nullptr && machine_has(kind)) found.push_back(kind);
    }
    return found;
  }();
  return available;
}

isa choose_isa(const std::string& name) {
  const auto& available = available_isas();
  if (name.empty()) return available.back();
  std::string names;
  for (const isa kind : available) {
    if (to_string(kind) == name) return kind;
    names += (names.empty() ? "" : ", ") + std::string(to_string(kind));
  }
  throw input_error("OCTAVO_CPU_ISA is \"" + name + "\"; this machine can run: " + names);
}

isa active_isa() {
  static const isa chosen = [] {
    const char* name = std::getenv("OCTAVO_CPU_ISA");
    return choose_isa(name == nullptr ? "" : name);
  }();
  return chosen;
}

const kernel_table& kernels_for(isa kind) {
  const auto& available = available_isas();
  if (std::find(available.begin(), available.end(), kind) == available.end()) {
    throw input_error(std::string(to_string(kind)) + " kernels cannot run on this machine");
  }
  return *table_of(kind);
}

const kernel_table& active_kernels() {
  static const kernel_table& table = kernels_for(active_isa());
  return table;
}

}  // namespace octavo::cpu
