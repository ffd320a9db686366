// Lets tests be written in Catch2 3 style and built with 2.13 as well.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
namespace Catch {
using Detail::Approx;
namespace Matchers {
template <class... Args>
auto ContainsSubstring(Args&&... args) {
  return Contains(std::forward<Args>(args)...);
}
}  // namespace Matchers
}  // namespace Catch
#endif
