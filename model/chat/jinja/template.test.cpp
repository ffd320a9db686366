// Small templates against Python's jinja2, set up as transformers does. The expected
// texts come from it, by bench/reference/chat_template_fixtures.py.
#include "model/chat/jinja/template.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/chat/jinja/from_json.hpp"
#include "model/tokenizer/reference_models.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using nlohmann::ordered_json;

TEST_CASE("small templates give what jinja2 gives, and fail where it fails") {
  const auto file =
      std::filesystem::path(OCTAVO_SOURCE_DIR) / "model/chat/fixtures" / "small_templates.json";
  const ordered_json fixture = ordered_json::parse(reference::read_file(file));
  jinja::variables given;
  for (const auto& [name, content] : fixture.at("variables").items()) {
    given.emplace(name, jinja::from_json(content, name));
  }
  REQUIRE(fixture.at("cases").size() > 200);
  for (const auto& one : fixture.at("cases")) {
    const auto text = one.at("template").get<std::string>();
    INFO("template " << one.at("template").dump());
    const auto render = [&] {
      return jinja::compiled_template(text)
          .render(given, fixture.at("now_s").get<std::int64_t>())
          .text();
    };
    if (one.contains("error")) {
      INFO("the reference fails: " << one.at("error").get<std::string>());
      CHECK_THROWS_AS(render(), input_error);
    } else {
      std::string got;
      CHECK_NOTHROW(got = render());
      CHECK(got == one.at("text").get<std::string>());
    }
  }
}

TEST_CASE("an error names the line and what is wrong") {
  const auto message = [](std::string_view text) -> std::string {
    try {
      static_cast<void>(jinja::compiled_template(text).render({}));
    } catch (const input_error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(message("a\nb\n{{ x.y }}") == "chat template, line 3: 'x' is undefined");
  CHECK(message("\n\n{% if true %}") == "chat template, line 3: a block has no {% endif %}");
  CHECK(message("{{ 1 +\n\n}}") ==
        "chat template, line 3: found }} where an expression is expected");
  // Python prints lone surrogates, which are no text.
  CHECK(message("{{ '\\ud800' }}") ==
        "chat template, line 1: a string has an escape that is no character: \\ud800");
  CHECK(message("\n{{ 1 | nope }}") == "chat template, line 2: there is no filter 'nope'");
  CHECK(message("{# a\n#}{%- set x = 1 %}\n{{ x + 'a' }}") ==
        "chat template, line 3: values of types integer and string cannot be used with +");
  CHECK(message("{{ raise_exception('Roles must alternate') }}") ==
        "the chat template refuses the conversation: Roles must alternate");
}

TEST_CASE("without a time a template has no strftime_now") {
  const jinja::compiled_template dated(
      "{{ strftime_now('%d %b %Y') if strftime_now is defined else 'no date' }}");
  CHECK(dated.render({}).text() == "no date");
  // 2026-03-05 14:07:09, counted by hand: 20,517 days and 50,829 seconds.
  CHECK(dated.render({}, 20'517LL * 86'400 + 50'829).text() == "05 Mar 2026");
}
