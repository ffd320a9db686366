// Templates come from strangers: whatever they ask for ends, within bounds.
#include <random>

#include "core/error.hpp"
#include "model/chat/jinja/from_json.hpp"
#include "model/chat/jinja/template.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string error_of(const std::string& text, const jinja::limits& allowed = {}) {
  try {
    static_cast<void>(jinja::compiled_template(text, allowed).render({}));
  } catch (const input_error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("nesting in the text is bounded") {
  CHECK_THAT(error_of("{{ " + repeated("(", 10'000) + "1" + repeated(")", 10'000) + " }}"),
             ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of("{{ 1" + repeated(" + 1", 10'000) + " }}"),
             ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of("{{ x" + repeated("[0]", 10'000) + " }}"),
             ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of("{{ " + repeated("not ", 10'000) + "1 }}"),
             ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of("{{ " + repeated("-", 10'000) + "1 }}"), ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of("{{ " + repeated("1 if 1 else ", 10'000) + "1 }}"),
             ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of(repeated("{% if 1 %}", 10'000)), ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of("{% set " + repeated("(", 10'000) + "a" + repeated(")", 10'000) + " = 1 %}"),
             ContainsSubstring("nested deeper"));
  CHECK(error_of("{{ 1" + repeated(" + 1", 100) + " }}") == "no error");
}

TEST_CASE("macros that call themselves end") {
  CHECK_THAT(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
             ContainsSubstring("levels deep"));
  CHECK_THAT(error_of("{% macro a(x=b()) %}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}"
                      "{{ a() }}"),
             ContainsSubstring("levels deep"));
}

TEST_CASE("steps, texts, ranges and nested values are bounded") {
  CHECK_THAT(error_of("{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}"
                      "{% endfor %}"),
             ContainsSubstring("steps"));
  CHECK_THAT(error_of("{% set n = namespace(x='ab') %}{% for i in range(99) %}"
                      "{% set n.x = n.x + n.x %}{% endfor %}"),
             ContainsSubstring("bytes"));
  CHECK_THAT(error_of("{% set n = namespace(x=[1]) %}{% for i in range(99) %}"
                      "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x == n.x }}"),
             ContainsSubstring("steps"));
  CHECK_THAT(error_of("{% set n = namespace(x=[]) %}{% for i in range(999) %}"
                      "{% set n.x = [n.x] %}{% endfor %}"),
             ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of("{{ 'abc' * 9223372036854775807 }}"), ContainsSubstring("too large"));
  CHECK_THAT(error_of("{{ 'ab' * 99999999999 }}"), ContainsSubstring("bytes"));
  CHECK_THAT(error_of("{{ [1] * 99999999999 }}"), ContainsSubstring("bytes"));
  CHECK_THAT(error_of("{{ [1, [2]] | tojson(indent=9999999999) }}"), ContainsSubstring("bytes"));
  CHECK_THAT(error_of("{{ 'a' | indent(9999999999) }}"), ContainsSubstring("bytes"));
  CHECK_THAT(error_of("{{ ('a' * 99999).replace('', 'b' * 99999) }}"), ContainsSubstring("bytes"));
  CHECK_THAT(error_of("{% for i in range(99999) %}{{ 'abcdefgh' * 9999 }}{% endfor %}"),
             ContainsSubstring("allowed"));
  CHECK_THAT(error_of("{{ range(0, 9223372036854775807) }}"), ContainsSubstring("range()"));
  CHECK_THAT(error_of("{{ 9223372036854775807 + 1 }}"), ContainsSubstring("too large"));
  CHECK_THAT(error_of("{{ 99999999999999999999 }}"), ContainsSubstring("too large"));
  CHECK_THAT(error_of("{{ (-9223372036854775807 - 1) // -1 }}"), ContainsSubstring("too large"));
  CHECK(error_of("{{ (-9223372036854775807 - 1) % -1 }}{{ [1, 2][::-9223372036854775807] }}") ==
        "no error");
  jinja::limits small;
  small.template_bytes = 10;
  CHECK_THAT(error_of("0123456789a", small), ContainsSubstring("10 are allowed"));
  CHECK_THAT(error_of("\xFF"), ContainsSubstring("UTF-8"));
}

TEST_CASE("namespaces and macros that hold each other go away with the rendering") {
  // Leaks are seen by AddressSanitizer.
  CHECK(error_of("{% set a = namespace() %}{% set a.me = a %}{% macro m() %}{{ a }}{% endmacro %}"
                 "{% set a.m = m %}{% for i in [1] %}{% macro k() %}{{ i }}{% endmacro %}"
                 "{% set a.k = k %}{% endfor %}{{ a.k() }}") == "no error");
}

TEST_CASE("templates with random changes render or are refused") {
  const std::string original =
      "{%- set ns = namespace(n=0, seen=[]) -%}{# note #}\n{% macro show(m, last=false) %}\n"
      "<|{{ m.role | upper }}|>{{ m['content'][1:-1:2] | trim | tojson(indent=2) }}"
      "{% if m.extra is defined and m.extra.items is callable %}{% for k, v in m.extra.items() "
      "if k != 'x' %}{{ loop.index }}:{{ k ~ '=' ~ v }}{% else %}-{% endfor %}{% endif %}\n"
      "{% endmacro %}{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}"
      "{% set ns.n = ns.n + m.content.split(' ')[0] | length %}{{ show(m, last=loop.last) }}"
      "{% endfor %}{{ ns.n ** 2 // 3 % 7 if ns.n > -1 else 'none' }}{% set b %}x{{ bos }}{% endset "
      "%}"
      "{{ [b, 1.5e3, (1, 2), {'k': none}] | map('string') | join(', ') }}"
      "{% raw %}{{ }}{% endraw %}{{ messages | selectattr('role', 'equalto', 'user') | list }}";
  const auto messages = nlohmann::ordered_json::parse(
      R"([{"role":"system","content":"s"},{"role":"user","content":"héllo <|x|> wörld",
          "extra":{"x":1,"y":[1,2.5,null,"z"]}},{"role":"assistant","content":""}])");
  const jinja::variables given{{"messages", jinja::from_json(messages, "messages")},
                               {"bos", jinja::make_text("<s>", true)}};
  REQUIRE_NOTHROW(jinja::compiled_template(original).render(given));
  constexpr std::string_view pieces[] = {
      "{{", "}}", "{%", "%}", "{#", "#}", "-", "'",  "\"", "(",  ")", "[",    "]", "|",   ".",
      ":",  "*",  "9",  "\\", "é",  "\n", "~", "if", "in", "is", "0", "not ", ",", "\xC3"};
  jinja::limits allowed;
  allowed.steps = 50'000;
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return random() % n; };
  int rendered = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = original;
    for (std::size_t changes = 1 + below(2); changes > 0; --changes) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text.erase(at, 1 + below(8));
          break;
        case 1:
          text.insert(at, pieces[below(std::size(pieces))]);
          break;
        case 2:
          text.replace(at, 1, pieces[below(std::size(pieces))]);
          break;
        default:
          text.insert(at, text.substr(below(text.size()), below(40)));
      }
    }
    try {
      static_cast<void>(jinja::compiled_template(text, allowed).render(given, 0));
      ++rendered;
    } catch (const input_error&) {
      // The only way out that is allowed.
    }
  }
  CHECK(rendered > 1'000);
  CHECK(rendered < 19'000);
}
