// Checks parameters of embedding.hpp and chooses the instance of its kernel.
#include "gpu/kernels/embedding/embedding.hpp"

#include "gpu/kernels/common/launching.hpp"
#include "gpu/kernels/embedding/embedding.cuh"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* kernel = "embedding";

void check(const embedding_params& p) {
  require_range(p.rows, 0, 0x7fffffff, kernel, "rows");
  require_range(p.width, 1, 1 << 24, kernel, "width");
  require_range(p.begin, 0, 0x7fffffff, kernel, "begin");
  require_range(p.end, p.begin, 0x7fffffff, kernel, "end");
  require_pointer(p.ids, kernel, "ids");
  if (p.sources != nullptr) require_pointer(p.chosen, kernel, "chosen");
  require_pointer(p.table, kernel, "table");
  require_pointer(p.output, kernel, "output");
  const bool known = p.output_type == dtype::float32 || p.output_type == p.type;
  require_field(known, kernel, "output_type", std::string(name_of(p.output_type)),
                "float32 and the type of the table");
}

template <class T, class Out, int count>
void run(const embedding_params& p, stream& s) {
  const embedding_arguments<T, Out> a{p.ids,
                                      p.sources,
                                      p.chosen,
                                      static_cast<const T*>(p.table),
                                      static_cast<Out*>(p.output),
                                      p.begin,
                                      p.end,
                                      p.width,
                                      p.scale};
  launch_shape shape{dim3(static_cast<unsigned>(p.rows)), dim3(threads_for(p.width / count, 256))};
  shape.name = kernel;
  launch(s, shape, embed_rows<count, T, Out>, a);
}

template <class T, class Out>
void choose_width(const embedding_params& p, stream& s) {
  const bool by_four = p.width % 4 == 0 && aligned_to(8, {p.table}) && aligned_to(16, {p.output});
  by_four ? run<T, Out, 4>(p, s) : run<T, Out, 1>(p, s);
}

}  // namespace

void embed(const embedding_params& p, stream& s) {
  check(p);
  if (p.rows == 0) return;
  with_half_type(p.type, kernel, "type", [&](auto tag) {
    using T = typename decltype(tag)::type;
    p.output_type == dtype::float32 ? choose_width<T, float>(p, s) : choose_width<T, T>(p, s);
  });
}

}  // namespace octavo::gpu
