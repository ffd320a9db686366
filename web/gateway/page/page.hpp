// The page at `/`, compiled into the program: plain files that load nothing from elsewhere.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace octavo::gateway {

struct page_file {
  std::string_view content_type;
  std::string_view text;
};

/// The file for a path of a URL ("/", "/page.js"); nothing where there is none.
[[nodiscard]] std::optional<page_file> page_file_at(std::string_view path);

struct embedded_file {
  /// Relative to web/gateway/page: "page.js".
  std::string_view path;
  std::string_view text;
};

/// All files of the page, sorted by path. The build generates the definition.
[[nodiscard]] std::span<const embedded_file> embedded_files();

}  // namespace octavo::gateway
