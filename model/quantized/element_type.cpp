// The table of element types. GGUF numbers and block sizes are those of the
// ggml library's public headers.
#include "model/quantized/element_type.hpp"

#include <algorithm>
#include <array>

namespace octavo::model {
namespace {

using enum element_type;

/// In the order of the enumeration, so that it can be indexed.
constexpr std::array table{
    element_type_info{f32, "F32", 1, 4},
    element_type_info{f16, "F16", 1, 2},
    element_type_info{bf16, "BF16", 1, 2},
    element_type_info{f64, "F64", 1, 8},
    element_type_info{boolean, "BOOL", 1, 1},
    element_type_info{i8, "I8", 1, 1},
    element_type_info{u8, "U8", 1, 1},
    element_type_info{i16, "I16", 1, 2},
    element_type_info{u16, "U16", 1, 2},
    element_type_info{i32, "I32", 1, 4},
    element_type_info{u32, "U32", 1, 4},
    element_type_info{i64, "I64", 1, 8},
    element_type_info{u64, "U64", 1, 8},
    element_type_info{f8_e4m3, "F8_E4M3", 1, 1},
    element_type_info{f8_e5m2, "F8_E5M2", 1, 1},
    element_type_info{f8_e8m0, "F8_E8M0", 1, 1},
    element_type_info{f8_e4m3fnuz, "F8_E4M3FNUZ", 1, 1},
    element_type_info{f8_e5m2fnuz, "F8_E5M2FNUZ", 1, 1},
    element_type_info{c64, "C64", 1, 8},
    element_type_info{q4_0, "Q4_0", 32, 18},
    element_type_info{q4_1, "Q4_1", 32, 20},
    element_type_info{q5_0, "Q5_0", 32, 22},
    element_type_info{q5_1, "Q5_1", 32, 24},
    element_type_info{q8_0, "Q8_0", 32, 34},
    element_type_info{q8_1, "Q8_1", 32, 36},
    element_type_info{q2_k, "Q2_K", 256, 84},
    element_type_info{q3_k, "Q3_K", 256, 110},
    element_type_info{q4_k, "Q4_K", 256, 144},
    element_type_info{q5_k, "Q5_K", 256, 176},
    element_type_info{q6_k, "Q6_K", 256, 210},
    element_type_info{q8_k, "Q8_K", 256, 292},
    element_type_info{iq2_xxs, "IQ2_XXS", 256, 66},
    element_type_info{iq2_xs, "IQ2_XS", 256, 74},
    element_type_info{iq3_xxs, "IQ3_XXS", 256, 98},
    element_type_info{iq1_s, "IQ1_S", 256, 50},
    element_type_info{iq4_nl, "IQ4_NL", 32, 18},
    element_type_info{iq3_s, "IQ3_S", 256, 110},
    element_type_info{iq2_s, "IQ2_S", 256, 82},
    element_type_info{iq4_xs, "IQ4_XS", 256, 136},
    element_type_info{iq1_m, "IQ1_M", 256, 56},
    element_type_info{tq1_0, "TQ1_0", 256, 54},
    element_type_info{tq2_0, "TQ2_0", 256, 66},
    element_type_info{mxfp4, "MXFP4", 32, 17},
};

constexpr bool indexed_by_type() {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(table[i].type) != i) return false;
  }
  return true;
}
static_assert(indexed_by_type());

struct gguf_number {
  std::uint32_t number;
  element_type type;
};

constexpr std::array gguf_numbers{
    gguf_number{0, f32},     gguf_number{1, f16},      gguf_number{2, q4_0},
    gguf_number{3, q4_1},    gguf_number{6, q5_0},     gguf_number{7, q5_1},
    gguf_number{8, q8_0},    gguf_number{9, q8_1},     gguf_number{10, q2_k},
    gguf_number{11, q3_k},   gguf_number{12, q4_k},    gguf_number{13, q5_k},
    gguf_number{14, q6_k},   gguf_number{15, q8_k},    gguf_number{16, iq2_xxs},
    gguf_number{17, iq2_xs}, gguf_number{18, iq3_xxs}, gguf_number{19, iq1_s},
    gguf_number{20, iq4_nl}, gguf_number{21, iq3_s},   gguf_number{22, iq2_s},
    gguf_number{23, iq4_xs}, gguf_number{24, i8},      gguf_number{25, i16},
    gguf_number{26, i32},    gguf_number{27, i64},     gguf_number{28, f64},
    gguf_number{29, iq1_m},  gguf_number{30, bf16},    gguf_number{34, tq1_0},
    gguf_number{35, tq2_0},  gguf_number{39, mxfp4},
};

}  // namespace

const element_type_info& info(element_type type) {
  return table[static_cast<std::size_t>(type)];
}

std::optional<element_type> gguf_element_type(std::uint32_t number) {
  const auto* found = std::find_if(gguf_numbers.begin(), gguf_numbers.end(),
                                   [&](const gguf_number& g) { return g.number == number; });
  if (found == gguf_numbers.end()) return std::nullopt;
  return found->type;
}

std::optional<element_type> safetensors_element_type(std::string_view name) {
  const auto* end = table.begin() + static_cast<std::ptrdiff_t>(q4_0);
  const auto* found =
      std::find_if(table.begin(), end, [&](const element_type_info& i) { return i.name == name; });
  if (found == end) return std::nullopt;
  return found->type;
}

}  // namespace octavo::model
