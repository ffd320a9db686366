// Progress of loading: see loading.hpp.
#include "programs/octavo/loading.hpp"

#include <cstdio>
#include <memory>
#include <utility>

#include "actors/wall_clock.hpp"
#include "sim/cli/progress.hpp"

namespace octavo {
namespace {

/// A bar, wiped when all is loaded, and before the message where loading fails.
class loading_bar {
 public:
  loading_bar(std::ostream& err, sim::progress_callback draw) : err_(err), draw_(std::move(draw)) {}
  ~loading_bar() { wipe(); }
  loading_bar(const loading_bar&) = delete;
  loading_bar& operator=(const loading_bar&) = delete;

  void hear(std::uint64_t done, std::uint64_t total) {
    if (done == total) return wipe();
    draw_(done, total);
    drawn_ = true;
  }

 private:
  void wipe() {
    if (std::exchange(drawn_, false)) sim::clear_progress_bar(err_);
  }

  std::ostream& err_;
  sim::progress_callback draw_;
  bool drawn_ = false;
};

}  // namespace

sim::progress_callback show_loading(std::ostream& err, bool tells_time) {
  if (auto draw = sim::make_progress_bar(err, "layers loaded")) {
    return [bar = std::make_shared<loading_bar>(err, std::move(draw))](
               std::uint64_t done, std::uint64_t total) { bar->hear(done, total); };
  }
  if (!tells_time) return {};
  return [&err, start = actors::wall_seconds()](std::uint64_t done, std::uint64_t total) {
    if (done < total) return;
    char text[80];
    std::snprintf(text, sizeof text, "loaded %llu layer%s in %.1f s\n",
                  static_cast<unsigned long long>(total), total == 1 ? "" : "s",
                  actors::wall_seconds() - start);
    err << text << std::flush;
  };
}

}  // namespace octavo
