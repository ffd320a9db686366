// Drawing with characters: see gantt.hpp.
#include "sim/teach/gantt.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "sim/teach/words.hpp"

namespace octavo::sim::teach {
namespace {

constexpr std::size_t name_columns_max = 18;

struct sign {
  int colour;  ///< of the terminal's basic palette; 0: as it is
  std::string_view meaning;
};

sign sign_of(cell c) {
  switch (c) {
    case cell::absent:
      return {0, {}};
    case cell::waiting:
      return {0, "waits"};
    case cell::preempted:
      return {35, "preempted: it lost its KV memory and waits"};
    case cell::stalled:
      return {33, "admitted, but no token in this step"};
    case cell::prefill:
      return {34, "prefill: its prompt is computed"};
    case cell::decode:
      return {32, "decode: a token each step"};
    case cell::waste:
      return {31, "waste: padding, a place held for others, tokens computed twice or past the end"};
    case cell::hit:
      return {36, "starts on tokens found in the prefix cache"};
    case cell::rejected:
      return {31, "rejected"};
  }
  return {0, {}};
}

std::string_view sign_text(cell c, ink with) {
  switch (c) {
    case cell::absent:
      return " ";
    case cell::waiting:
      return with.utf8 ? "·" : ".";
    case cell::preempted:
      return "!";
    case cell::stalled:
      return with.utf8 ? "─" : "-";
    case cell::prefill:
      return with.utf8 ? "▒" : "P";
    case cell::decode:
      return with.utf8 ? "█" : "D";
    case cell::waste:
      return with.utf8 ? "×" : "x";
    case cell::hit:
      return with.utf8 ? "◆" : "H";
    case cell::rejected:
      return "R";
  }
  return "?";
}

// Neighbours of one colour share its escape sequence.
void put(drawn_line& line, std::span<const cell> cells, ink with) {
  int colour = 0;
  const auto switch_to = [&](int next) {
    if (!with.colour || next == colour) return;
    line.text += "\x1b[" + std::to_string(next) + "m";
    colour = next;
  };
  for (const cell c : cells) {
    switch_to(sign_of(c).colour);
    line.text += sign_text(c, with);
    ++line.columns;
  }
  switch_to(0);
}

void put(drawn_line& line, std::string_view text) {
  line.text += text;
  line.columns += display_columns(text);
}

cell cell_for(activity what) {
  switch (what) {
    case activity::absent:
      return cell::absent;
    case activity::waiting:
      return cell::waiting;
    case activity::preempted:
      return cell::preempted;
    case activity::stalled:
      return cell::stalled;
    case activity::prefill:
      return cell::prefill;
    case activity::decode:
      return cell::decode;
    case activity::waste:
      return cell::waste;
  }
  return cell::absent;
}

// Column edges in microseconds, exact: column c covers [edge(c), edge(c + 1)).
micros edge(const time_window& w, std::size_t column) {
  const std::int64_t length = (w.to - w.from).raw();
  return w.from +
         micros{length * static_cast<std::int64_t>(column) / static_cast<std::int64_t>(w.columns)};
}

std::size_t column_of(const time_window& w, micros moment) {
  std::size_t column = 0;
  while (column + 1 < w.columns && edge(w, column + 1) <= moment) ++column;
  return column;
}

cell most_of(const lifeline& life, micros from, micros to) {
  std::array<std::int64_t, 8> time{};
  std::int64_t covered = 0;
  for (const span& s : life.spans) {
    const micros begin = std::max(s.from, from);
    const micros end = std::min(s.to, to);
    if (end <= begin) continue;
    time[static_cast<std::size_t>(s.what)] += (end - begin).raw();
    covered += (end - begin).raw();
  }
  time[static_cast<std::size_t>(activity::absent)] = (to - from).raw() - covered;
  const auto best = std::ranges::max_element(time);
  return cell_for(static_cast<activity>(best - time.begin()));
}

// A step number every so many columns, where a step begins.
std::string step_ruler(const recording& run, const time_window& w) {
  std::string line(w.columns, ' ');
  std::size_t free_from = 0;
  for (std::size_t i = 0; i < run.records.size(); ++i) {
    if (!run.intervals[i].ran) continue;
    const std::string number = std::to_string(run.records[i].step.raw());
    const std::size_t at = column_of(w, run.intervals[i].from);
    if (at < free_from || at + number.size() > w.columns) continue;
    line.replace(at, number.size(), number);
    free_from = at + number.size() + 1;
  }
  return line;
}

// A round step of time that leaves some eleven columns between labels.
micros axis_step(const time_window& w) {
  const std::int64_t wanted = (w.to - w.from).raw() * 11 / static_cast<std::int64_t>(w.columns);
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (power * digit >= wanted) return micros{power * digit};
    }
  }
}

std::string time_axis(const time_window& w) {
  std::string line(w.columns, ' ');
  const micros step = axis_step(w);
  std::size_t free_from = 0;
  for (micros offset; w.from + offset < w.to; offset += step) {
    std::string label = "|" + readable(offset);
    if (const auto zero = label.find(".0 "); zero != std::string::npos) label.erase(zero, 2);
    const std::size_t at = column_of(w, w.from + offset);
    if (at < free_from || at + label.size() > w.columns) continue;
    line.replace(at, label.size(), label);
    free_from = at + label.size() + 1;
  }
  return line;
}

bool is_useful(cell c) {
  return c == cell::prefill || c == cell::decode || c == cell::hit;
}

// A name cut or filled to `columns`, and a space.
std::string name_cell(std::string name, std::size_t columns) {
  while (display_columns(name) > columns) name.pop_back();
  return name + std::string(columns + 1 - display_columns(name), ' ');
}

}  // namespace

std::size_t name_columns(const std::vector<std::string>& names) {
  std::size_t longest = 8;
  for (const std::string& name : names) longest = std::max(longest, display_columns(name));
  return std::min(longest, name_columns_max);
}

std::vector<cell> cells_of(const lifeline& life, const time_window& w) {
  std::vector<cell> row;
  row.reserve(w.columns);
  for (std::size_t c = 0; c < w.columns; ++c) {
    row.push_back(most_of(life, edge(w, c), edge(w, c + 1)));
  }
  for (const span& s : life.spans) {
    const cell wanted = cell_for(s.what);
    if (!is_useful(wanted) && wanted != cell::preempted) continue;
    const std::size_t first = column_of(w, s.from);
    const std::size_t last = column_of(w, s.to - micros{1});
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = row.begin() + static_cast<std::ptrdiff_t>(last) + 1;
    if (std::find(begin, end, wanted) == end && !is_useful(*begin)) *begin = wanted;
  }
  for (const micros hit : life.hits) row[column_of(w, hit)] = cell::hit;
  if (life.rejected >= micros{0}) row[column_of(w, life.rejected)] = cell::rejected;
  return row;
}

picture draw(const recording& run, const time_window& w, const std::vector<std::string>& names,
             ink with) {
  const std::size_t label = name_columns(names);
  picture drawn;
  std::vector<drawn_line>& lines = drawn.lines;
  lines.resize(2);
  put(lines[0], name_cell("time", label) + time_axis(w));
  put(lines[1], name_cell("step", label) + step_ruler(run, w));
  std::vector<int> at_work(w.columns, 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    drawn_line& line = lines.emplace_back();
    put(line, name_cell(names[i], label));
    const std::vector<cell> row = cells_of(run.lives[i], w);
    put(line, row, with);
    for (std::size_t c = 0; c < row.size(); ++c) {
      drawn.used.insert(row[c]);
      at_work[c] += is_useful(row[c]) ? 1 : 0;
    }
  }
  drawn_line& sums = lines.emplace_back();
  std::string digits;
  for (const int count : at_work) {
    digits += count == 0 ? ' ' : count > 9 ? '+' : static_cast<char>('0' + count);
  }
  put(sums, name_cell("at work", label) + digits);
  return drawn;
}

std::vector<std::string> legend(const std::set<cell>& used, ink with) {
  std::vector<std::string> lines;
  for (const cell c : used) {
    if (c == cell::absent) continue;
    drawn_line line;
    put(line, std::span{&c, 1}, with);
    lines.push_back(line.text + "  " + std::string(sign_of(c).meaning));
  }
  return lines;
}

}  // namespace octavo::sim::teach
