// Chained, tagged block keys: see block_key.hpp.
#include "core/block_key.hpp"

#include <vector>

namespace octavo {
namespace {

// Serialises tagged, length-prefixed fields into one buffer to hash.
class field_buffer {
 public:
  void put(char tag, const void* data, std::size_t size) {
    append(&tag, 1);
    const std::uint64_t length = size;
    append(&length, sizeof length);
    append(data, size);
  }
  void put(char tag, std::string_view text) { put(tag, text.data(), text.size()); }

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }

  std::vector<std::byte> bytes_;
};

}  // namespace

block_key block_hasher::root(const key_scope& scope) const {
  field_buffer fields;
  fields.put('A', scope.adapter_digest);
  fields.put('S', scope.cache_salt);
  fields.put('M', scope.extra_digest);
  return siphash128(secret_, fields.bytes());
}

block_key block_hasher::chain(const block_key& parent, std::span<const token_id> tokens) const {
  field_buffer fields;
  fields.put('P', &parent, sizeof parent);
  fields.put('T', tokens.data(), tokens.size_bytes());
  return siphash128(secret_, fields.bytes());
}

block_key block_hasher::named(const block_key& parent_scope, std::uint64_t content_id,
                              std::uint32_t index) const {
  field_buffer fields;
  fields.put('P', &parent_scope, sizeof parent_scope);
  fields.put('C', &content_id, sizeof content_id);
  fields.put('I', &index, sizeof index);
  return siphash128(secret_, fields.bytes());
}

}  // namespace octavo
