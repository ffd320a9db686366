// Prompts equal to jinja2's with the templates of real models. Needs
// $OCTAVO_CHAT_TEMPLATES, which bench/reference/chat_template_fixtures.py fills.
#include <cstdlib>
#include <filesystem>

#include "core/error.hpp"
#include "model/chat/chat_template.hpp"
#include "model/tokenizer/reference_models.hpp"
#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using nlohmann::ordered_json;

struct tally {
  int same = 0;
  int refused = 0;  ///< by both
  /// Where the reference stumbles: its filters give generators, which it cannot use as
  /// lists, and `safe` makes it escape later text for HTML.
  int excused = 0;
  int differ = 0;
};

/// Text, or an error after "error: ".
std::string rendered(const chat_template& chat, const ordered_json& record,
                     const ordered_json& one) {
  chat_options options;
  options.add_generation_prompt = one.at("add_generation_prompt");
  options.tools = one.at("tools");
  if (one.contains("variables")) options.variables = one.at("variables");
  options.now_s = record.at("now_s").get<std::int64_t>();
  try {
    return chat.render(one.at("messages"), options).text();
  } catch (const input_error& error) {
    return std::string("error: ") + error.what();
  }
}

tally compare(const ordered_json& record) {
  chat_source source;
  source.templates.emplace("default", record.at("template").get<std::string>());
  for (const auto& [name, text] : record.at("tokens").items()) {
    source.special_tokens.emplace(name, text.get<std::string>());
  }
  const chat_template chat(source);
  tally counts;
  for (const auto& one : record.at("cases")) {
    const std::string got = rendered(chat, record, one);
    const bool fails = got.starts_with("error: ");
    const bool equal = one.contains("text") ? got == one.at("text").get<std::string>() : fails;
    if (equal) {
      ++(fails ? counts.refused : counts.same);
    } else if (one.value("error", "").find("generator") != std::string::npos ||
               one.value("text", "").find("&#34;") != std::string::npos) {
      ++counts.excused;
    } else if (++counts.differ <= 3) {
      UNSCOPED_INFO(one.at("messages").dump() << "\n  got    " << got << "\n  wanted "
                                              << one.value("text", one.value("error", "")));
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("real models' templates give what jinja2 gives", "[chat-real]") {
  const char* folder = std::getenv("OCTAVO_CHAT_TEMPLATES");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) {
    WARN("skipped: OCTAVO_CHAT_TEMPLATES absent");
    return;
  }
  std::string table;
  int equal = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    const ordered_json record = ordered_json::parse(reference::read_file(file.path()));
    if (record.contains("refused")) continue;  // by the reference itself
    const tally counts = compare(record);
    INFO(record.at("name").get<std::string>());
    CHECK(counts.differ == 0);
    equal += counts.differ == 0 ? 1 : 0;
    table += "\n" + record.at("name").get<std::string>() + ": " + std::to_string(counts.same) +
             " equal, " + std::to_string(counts.refused) + " refused by both, " +
             std::to_string(counts.excused) + " excused, " + std::to_string(counts.differ) +
             " differ";
  }
  WARN(equal << " templates give equal prompts" << table);
  CHECK(equal >= 10);
}

}  // namespace octavo::model
