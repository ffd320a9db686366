// The embedded page: whole, typed, and free of what a strict policy forbids.
#include "web/gateway/page/page.hpp"

#include <filesystem>
#include <string>

#include "tests/support/catch.hpp"
#include "traces/temp_file.hpp"

using namespace octavo::gateway;

TEST_CASE("each file of the page is served byte by byte as it lies in the source") {
  const auto [path, name, type] = GENERATE(table<std::string, std::string, std::string>({
      {"/", "index.html", "text/html; charset=utf-8"},
      {"/index.html", "index.html", "text/html; charset=utf-8"},
      {"/page.css", "page.css", "text/css; charset=utf-8"},
      {"/page.js", "page.js", "text/javascript; charset=utf-8"},
      {"/icon.svg", "icon.svg", "image/svg+xml"},
  }));
  const auto file = page_file_at(path);
  REQUIRE(file);
  CHECK(file->content_type == type);
  const auto source = std::filesystem::path{OCTAVO_SOURCE_DIR} / "web/gateway/page" / name;
  CHECK(std::string{file->text} == octavo::traces::contents_of(source));
  CHECK(file->text.size() > 100);
}

TEST_CASE("other paths have no file") {
  for (const char* path : {"", "index.html", "//", "/page.cpp", "/../page.js", "/page.js/"}) {
    INFO(path);
    CHECK_FALSE(page_file_at(path));
  }
}

TEST_CASE("the page loads nothing from elsewhere and needs no inline code or style") {
  for (const embedded_file& file : embedded_files()) {
    INFO(file.path);
    for (const char* word : {"https://", "innerHTML", "outerHTML", "insertAdjacentHTML",
                             "document.write", "eval(", " style=", " onclick=\""}) {
      INFO(word);
      CHECK(file.text.find(word) == std::string_view::npos);
    }
  }
  const std::string_view html = page_file_at("/")->text;
  CHECK(html.find("<style") == std::string_view::npos);
  // The one script is loaded, and has no text of its own.
  const auto script = html.find("<script");
  CHECK(html.find("<script", script + 1) == std::string_view::npos);
  CHECK(html.substr(script).starts_with(R"(<script src="page.js" type="module"></script>)"));
}
