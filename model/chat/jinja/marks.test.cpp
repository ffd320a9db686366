// Which bytes of a rendered text may spell control tokens.
#include "core/error.hpp"
#include "model/chat/jinja/template.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;

namespace {

/// Renders, with the trusted runs in brackets.
std::string marked(std::string_view text) {
  const jinja::variables given{
      {"user", jinja::make_text(" <a>B<a> ", false)},
      {"bos", jinja::make_text("<s>", true)},
      {"list", jinja::make_list({jinja::make_text("x", false), std::int64_t{1}}, {})}};
  const marked_text out = jinja::compiled_template(text).render(given);
  std::string shown;
  out.for_each_run({0, out.text().size()}, [&](std::string_view run, bool trusted) {
    shown += trusted ? "[" + std::string(run) + "]" : std::string(run);
  });
  return shown;
}

}  // namespace

TEST_CASE("the template's text is trusted and a user's is not") {
  CHECK(marked("A{{ user }}B") == "[A] <a>B<a> [B]");
  CHECK(marked("{{ bos ~ user ~ '|' ~ 7 ~ none }}") == "[<s>] <a>B<a> [|7None]");
  CHECK(marked("{{ '<' + user + '>' }}") == "[<] <a>B<a> [>]");
}

TEST_CASE("marks go with the characters through what is done to a text") {
  CHECK(marked("{{ (user ~ '!') | trim }}") == "<a>B<a> [!]");
  CHECK(marked("{{ ('[' ~ user).strip('[ ') }}") == "<a>B<a>");
  CHECK(marked("{{ ('Ab' ~ user) | upper }}") == "[AB] <A>B<A> ");
  CHECK(marked("{{ ('ab' ~ user).title() }}") == "[Ab] <A>B<A> ");
  CHECK(marked("{{ user | replace('B', '-') }}") == " <a>[-]<a> ");
  CHECK(marked("{{ 'a.b.c' | replace('.', user) }}") == "[a] <a>B<a> [b] <a>B<a> [c]");
  CHECK(marked("{{ user.split('B') | join('+') }}") == " <a>[+]<a> ");
  CHECK(marked("{{ ('ab' ~ user)[1:3] }}") == "[b] ");
  CHECK(marked("{{ ('ab' ~ user) | reverse }}") == " >a<B>a< [ba]");
  CHECK(marked("{{ '{} {}'.format(user, 1) }}") == " <a>B<a> [ 1]");
  CHECK(marked("{{ '<%s>' % user }}") == "[<] <a>B<a> [>]");
  CHECK(marked("{% set x %}a{{ user }}{% endset %}{{ x }}") == "[a] <a>B<a> ");
  CHECK(marked("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(user) }}") == "[<] <a>B<a> [>]");
  CHECK(marked("{{ user | indent(1, true) }}") == "[ ] <a>B<a> ");
  CHECK(marked("{% for c in user | trim %}{{ c }}.{% endfor %}") == "<[.]a[.]>[.]B[.]<[.]a[.]>[.]");
}

TEST_CASE("where the origin is lost nothing is trusted") {
  CHECK(marked("{{ '<s>' | tojson }}{{ ['<s>'] }}{{ list | tojson }}") ==
        "\"<s>\"['<s>'][\"x\", 1]");
}
