// What must and what must not give equal keys.
#include "core/block_key.hpp"

#include <set>
#include <vector>

#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

const block_hasher hasher{{0x1234, 0x5678}};
using ids = std::vector<token_id>;

}  // namespace

TEST_CASE("an adapter and a salt of equal text give different keys") {
  const block_key adapter = hasher.root({.adapter_digest = "x"});
  const block_key salt = hasher.root({.cache_salt = "x"});
  const block_key extra = hasher.root({.extra_digest = "x"});
  CHECK(adapter != salt);
  CHECK(adapter != extra);
  CHECK(salt != extra);
  CHECK(salt != hasher.root({}));
  CHECK(salt == hasher.root({.cache_salt = "x"}));
}

TEST_CASE("fields are prefixed with their length, so text cannot move between them") {
  CHECK(hasher.root({.adapter_digest = "ab", .cache_salt = "c"}) !=
        hasher.root({.adapter_digest = "a", .cache_salt = "bc"}));
  // A value that imitates the bytes of the next field's tag and length.
  CHECK(hasher.root({.adapter_digest = std::string_view{"aS\1\0\0\0\0\0\0\0b", 11}}) !=
        hasher.root({.adapter_digest = "a", .cache_salt = "b"}));
}

TEST_CASE("a block's key depends on all before it, on its tokens and on the secret") {
  const block_key root = hasher.root({});
  const ids first{1, 2, 3};
  const ids second{4, 5, 6};
  const std::set<block_key> different{hasher.chain(root, first),
                                      hasher.chain(root, second),
                                      hasher.chain(hasher.chain(root, first), second),
                                      hasher.chain(hasher.chain(root, second), first),
                                      hasher.chain(hasher.root({.cache_salt = "a"}), first),
                                      hasher.chain(root, ids{1, 2, 3, 4}),
                                      block_hasher{{1, 2}}.chain(root, first)};
  CHECK(different.size() == 7);
  CHECK(hasher.chain(root, first) == hasher.chain(root, ids{1, 2, 3}));
}

TEST_CASE("keys by content id and keys by tokens never meet") {
  const block_key root = hasher.root({});
  const ids as_tokens{42, 0};
  CHECK(hasher.named(root, 42, 0) != hasher.chain(root, as_tokens));
  CHECK(hasher.named(root, 42, 0) != hasher.named(root, 42, 1));
  CHECK(hasher.named(root, 42, 0) != hasher.named(root, 43, 0));
}

TEST_CASE("private keys differ by request, sample and block") {
  const std::set<block_key> different{
      private_key(request_id{1}, 0, 0), private_key(request_id{2}, 0, 0),
      private_key(request_id{1}, 1, 0), private_key(request_id{1}, 0, 1)};
  CHECK(different.size() == 4);
}
