// Checks parameters of row_gather.hpp and chooses the instance of its kernel.
#include "gpu/kernels/row_gather/row_gather.hpp"

#include "gpu/kernels/common/launching.hpp"
#include "gpu/kernels/row_gather/row_gather.cuh"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* kernel = "row_gather";

template <class Word>
void run(const row_gather_params& p, stream& s) {
  const int words = static_cast<int>(p.row_bytes / sizeof(Word));
  launch_shape shape{dim3(static_cast<unsigned>(p.rows)), dim3(threads_for(words, 256))};
  shape.name = kernel;
  launch(s, shape, gather_row_words<Word>, p.ids, static_cast<const Word*>(p.input),
         static_cast<Word*>(p.output), words);
}

}  // namespace

void gather_rows(const row_gather_params& p, stream& s) {
  require_range(p.rows, 0, 0x7fffffff, kernel, "rows");
  require_range(static_cast<std::int64_t>(p.row_bytes), 2, 1 << 30, kernel, "row_bytes");
  require_field(p.row_bytes % 2 == 0, kernel, "row_bytes", std::to_string(p.row_bytes),
                "even numbers");
  require_pointer(p.ids, kernel, "ids");
  require_pointer(p.input, kernel, "input");
  require_pointer(p.output, kernel, "output");
  if (p.rows == 0) return;
  const bool wide = p.row_bytes % 16 == 0 && aligned_to(16, {p.input, p.output});
  wide ? run<uint4>(p, s) : run<unsigned short>(p, s);
}

}  // namespace octavo::gpu
