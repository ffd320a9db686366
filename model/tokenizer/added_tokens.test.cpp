// Added tokens: which is found where, and who may spell it.
#include "model/tokenizer/added_tokens.hpp"

#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

struct found {
  std::size_t begin;
  std::size_t end;
  token_id id;
  friend bool operator==(const found&, const found&) = default;
};
using all_found = std::vector<found>;

all_found find(const added_token_set& set, const marked_text& text) {
  all_found result;
  for (const added_match& match : set.find_all(text)) {
    result.push_back({match.range.begin, match.range.end, match.id});
  }
  return result;
}

all_found find(const added_token_set& set, std::string_view text, bool trusted = true) {
  marked_text marked;
  marked.append(text, trusted);
  return find(set, marked);
}

added_token plain(token_id id) {
  return {id, false, false, false, false};
}
added_token control(token_id id) {
  return {id, true, false, false, false};
}

}  // namespace

TEST_CASE("the leftmost match wins, and of those the longest") {
  added_token_set set;
  set.insert("ab", plain(1));
  set.insert("abcd", plain(2));
  set.insert("bc", plain(3));
  CHECK(find(set, "xabcdab") == all_found{{1, 5, 2}, {5, 7, 1}});
  CHECK(find(set, "abc") == all_found{{0, 2, 1}});
  CHECK(find(set, "").empty());
}

TEST_CASE("control tokens need trusted text, all of it") {
  added_token_set set;
  set.insert("<|end|>", control(1));
  set.insert("<|end|>!", control(3));
  set.insert("<", plain(2));
  CHECK(find(set, "<|end|>", true) == all_found{{0, 7, 1}});
  CHECK(find(set, "<|end|>", false) == all_found{{0, 1, 2}});
  marked_text mixed;
  mixed.append("<|en", true);
  mixed.append("d|>", false);
  CHECK(find(set, mixed) == all_found{{0, 1, 2}});
  marked_text user_first;
  user_first.append("<|en", false);
  user_first.append("d|><|end|>", true);
  CHECK(find(set, user_first) == all_found{{0, 1, 2}, {7, 14, 1}});
  marked_text joined;
  joined.append("<|en", true);
  joined.append("", false);
  joined.append("d|>", true);
  joined.append("!", false);
  CHECK(find(set, joined) == all_found{{0, 7, 1}});
}

TEST_CASE("a token takes the white space beside it along where it says so") {
  added_token_set set;
  set.insert("L", {1, false, true, false, false});
  set.insert("R", {2, false, false, true, false});
  CHECK(find(set, "a \xE3\x80\x80L b") == all_found{{1, 6, 1}});
  CHECK(find(set, "aR \n b") == all_found{{1, 5, 2}});
  // White space that the token before has taken is not taken twice.
  CHECK(find(set, "R  L") == all_found{{0, 3, 2}, {3, 4, 1}});
}

TEST_CASE("a single word must not touch others") {
  added_token_set set;
  set.insert("cat", {1, false, false, false, true});
  CHECK(find(set, "cat") == all_found{{0, 3, 1}});
  CHECK(find(set, "a cat!") == all_found{{2, 5, 1}});
  CHECK(find(set,
             "cats concat cat_ \xC3\xA9"
             "cat")
            .empty());
}

TEST_CASE("tokens that steer a model are known by their spelling") {
  for (const char* text : {"<|im_end|>", "<｜User｜>", "[INST]", "[/INST]", "<think>", "</think>",
                           "<tool_call>", "<unused7>", "<start_of_turn>", "<｜tool▁sep｜>"}) {
    CHECK(has_control_spelling(text));
  }
  for (const char* text : {"\n\n", "▁▁", "<table>", "</s>", "<h1>", "  ", "word", "<>", "[]"}) {
    CHECK_FALSE(has_control_spelling(text));
  }
}

TEST_CASE("runs of equal trust come back in order") {
  marked_text text;
  text.append("ab", true);
  text.append("cd", false);
  text.append("ef", true);
  text.append("gh", true);
  std::string seen;
  text.for_each_run({1, 7}, [&](std::string_view run, bool trusted) {
    seen += std::string(run) + (trusted ? "+" : "-");
  });
  CHECK(seen == "b+cd-efg+");
}

}  // namespace octavo::model
