// Which file a path names: see page.hpp.
#include "web/gateway/page/page.hpp"

#include <algorithm>

namespace octavo::gateway {
namespace {

std::string_view content_type_of(std::string_view path) {
  if (path.ends_with(".html")) return "text/html; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  return "image/svg+xml";
}

}  // namespace

std::optional<page_file> page_file_at(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  const std::string_view name = path == "/" ? "index.html" : path.substr(1);
  const auto files = embedded_files();
  const auto found = std::ranges::find(files, name, &embedded_file::path);
  if (found == files.end()) return std::nullopt;
  return page_file{content_type_of(found->path), found->text};
}

}  // namespace octavo::gateway
