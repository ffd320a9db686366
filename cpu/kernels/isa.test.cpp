// The choice of instructions.
#include "cpu/kernels/isa.hpp"

#include "core/error.hpp"
#include "cpu/kernels/kernel_table.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;

TEST_CASE("the best instruction set is the default and any available one can be asked for") {
  CHECK(available_isas().front() == isa::portable);
  CHECK(choose_isa("") == available_isas().back());
  for (const isa kind : available_isas()) {
    CHECK(choose_isa(std::string(to_string(kind))) == kind);
    CHECK(kernels_for(kind).kind == kind);
  }
}

TEST_CASE("an unknown instruction set is refused with the names of those there are") {
  try {
    (void)choose_isa("neon");
    FAIL("accepted neon");
  } catch (const input_error& error) {
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("OCTAVO_CPU_ISA"));
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("neon"));
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("portable"));
  }
}
