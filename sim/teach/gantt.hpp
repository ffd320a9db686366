// Draws a recording as rows of characters: one row a request, time to the right.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sim/teach/recording.hpp"

namespace octavo::sim::teach {

struct ink {
  bool utf8 = true;  ///< block characters; else plain ASCII
  bool colour = false;
};

/// A line and how many columns it takes on the screen.
struct drawn_line {
  std::string text;
  std::size_t columns = 0;
};

/// What part of time the columns show: the same for pictures to be compared.
struct time_window {
  micros from;
  micros to;
  std::size_t columns = 1;
};

/// What a column of a row shows.
enum class cell : std::uint8_t {
  absent,
  waiting,
  preempted,
  stalled,
  prefill,
  decode,
  waste,
  hit,
  rejected,
};

/// The cells of one row. A column shows what fills most of it; prefill, decode
/// and preemption that would vanish so get the column in which they begin.
[[nodiscard]] std::vector<cell> cells_of(const lifeline& life, const time_window& window);

struct picture {
  std::vector<drawn_line> lines;
  std::set<cell> used;  ///< for the legend
};

/// Time axis, step numbers, a row per request (named by `names`, in their
/// order), and how many sequences do useful work at once.
[[nodiscard]] picture draw(const recording& run, const time_window& window,
                           const std::vector<std::string>& names, ink with);

/// What the characters used mean.
[[nodiscard]] std::vector<std::string> legend(const std::set<cell>& used, ink with);

/// Columns that row names take in `draw`.
[[nodiscard]] std::size_t name_columns(const std::vector<std::string>& names);

}  // namespace octavo::sim::teach
