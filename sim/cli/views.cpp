// The views that teach: see views.hpp.
#include "sim/cli/views.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "sim/cli/prepare.hpp"
#include "sim/teach/explain.hpp"
#include "sim/teach/timeline.hpp"
#include "traces/reader.hpp"

namespace octavo::sim {
namespace {

std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* given = std::getenv("COLUMNS");
  const int columns = given == nullptr ? 0 : std::atoi(given);
  return columns > 0 ? static_cast<std::size_t>(columns) : timeline_options{}.columns;
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = value;
    return locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

prepared_run prepared(const sim_options& options) {
  return prepare_run(options, std::make_shared<traces::trace>(traces::read_trace(options.trace)));
}

// A name of the trace, else a number.
std::uint32_t index_of(const std::string& id, const traces::trace& trace) {
  const auto named = std::ranges::find(trace.ids, id);
  if (named != trace.ids.end()) return static_cast<std::uint32_t>(named - trace.ids.begin());
  std::uint32_t index = 0;
  const auto [end, problem] = std::from_chars(id.data(), id.data() + id.size(), index);
  if (problem != std::errc{} || end != id.data() + id.size()) {
    throw input_error("--explain: the trace has no request '" + id +
                      "'; give a request's name or its number from 0 to " +
                      std::to_string(trace.requests.size() - 1));
  }
  return index;
}

}  // namespace

void show_timeline(const sim_options& options, std::ostream& out) {
  timeline_options view;
  view.columns = terminal_columns();
  view.utf8 = speaks_utf8();
  view.colour = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  print_timeline(prepared(options).simulation, view, out);
}

void show_explanation(const sim_options& options, std::ostream& out) {
  const prepared_run run = prepared(options);
  explain_request(run.simulation, index_of(options.explain, *run.simulation.trace), out);
}

}  // namespace octavo::sim
