// The progress bar: see progress.hpp.
#include "sim/cli/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "actors/wall_clock.hpp"

namespace octavo::sim {
namespace {

constexpr double interval_s = 0.1;
constexpr int width = 30;

bool on_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

}  // namespace

progress_callback make_progress_bar(std::ostream& err, const std::string& what) {
  if (!on_terminal()) return {};
  const double start = actors::wall_seconds();
  return [&err, start, what, last = start](std::uint64_t ended, std::uint64_t total) mutable {
    const double now = actors::wall_seconds();
    if (now - last < interval_s || ended == 0) return;
    last = now;
    const double share = static_cast<double>(ended) / static_cast<double>(total);
    const double left_s = (now - start) * (1 - share) / share;
    const auto filled = static_cast<std::size_t>(share * width);
    std::string count;
    if (!what.empty()) {
      count = std::to_string(ended) + " of " + std::to_string(total) + " " + what + ", ";
    }
    char text[160];
    std::snprintf(text, sizeof text, "\r[%s%s] %3.0f %%  %s%.0f s left ",
                  std::string(filled, '#').c_str(), std::string(width - filled, '.').c_str(),
                  share * 100, count.c_str(), left_s);
    err << text << std::flush;
  };
}

void clear_progress_bar(std::ostream& err) {
  if (on_terminal()) err << "\r\x1b[2K" << std::flush;
}

}  // namespace octavo::sim
