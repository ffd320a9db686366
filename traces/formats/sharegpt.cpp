// ShareGPT's collection of conversations: an array of {id, conversations:
// [{from, value}]}. It holds text and no lengths, so a token is taken to be 4
// bytes, and no times, so all conversations start at 0. Each answer is a request
// whose prompt is everything said before; it arrives when the answer before it
// has finished. Blocks of 16 tokens are named by a chained hash of their 64 bytes.
#include <optional>

#include "traces/formats/formats.hpp"
#include "traces/formats/json.hpp"

namespace octavo::traces {
namespace {

constexpr std::size_t bytes_per_token = 4;
constexpr std::size_t tokens_per_block = 16;
constexpr std::size_t bytes_per_block = bytes_per_token * tokens_per_block;

enum class speaker { user, assistant, other };

struct message {
  std::optional<speaker> from;
  std::optional<std::string_view> text;
};

/// Counts for the notes.
struct sharegpt_totals {
  std::size_t empty_answers = 0;
  std::size_t unanswered = 0;
};

speaker speaker_of(std::string_view name) {
  for (const std::string_view user : {"human", "user"}) {
    if (name == user) return speaker::user;
  }
  for (const std::string_view model : {"gpt", "chatgpt", "assistant", "bing", "bard", "model"}) {
    if (name == model) return speaker::assistant;
  }
  return speaker::other;
}

std::size_t tokens_in(std::size_t bytes) {
  return (bytes + bytes_per_token - 1) / bytes_per_token;
}

token_count checked_tokens(const place& at, std::string_view field, std::size_t bytes) {
  return parse_tokens(at, field, std::to_string(tokens_in(bytes)));
}

/// A conversation so far: its length and the chained hashes of its full blocks.
class conversation {
 public:
  void append(std::string_view text) {
    bytes_ += text.size();
    for (const char c : text) {
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
      if (++in_block_ < bytes_per_block) continue;
      full_blocks_.push_back(hash_);
      in_block_ = 0;
    }
  }

  /// Sets the request's prompt to all that was said.
  void prompt(request& r, const place& at, trace_builder& builder) const {
    r.prompt_tokens = checked_tokens(at, "value", bytes_);
    builder.begin_prefix(r, at);
    for (const auto id : full_blocks_) builder.add_prefix_id(r, id);
    if (in_block_ > 0) builder.add_prefix_id(r, hash_);  // partial: content of its own
  }

  [[nodiscard]] bool empty() const { return bytes_ == 0; }

 private:
  std::size_t bytes_ = 0;
  std::size_t in_block_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
  std::vector<std::uint64_t> full_blocks_;
};

message read_message(const place& at, json_object object) {
  message result;
  for_each_field(at, object, [&](std::string_view key, json_value& value) {
    if (key == "from" || key == "role") result.from = speaker_of(json_text(at, key, value));
    if (key == "value" || key == "content") result.text = json_text(at, key, value);
  });
  if (!result.from) fail(at, "from", "", "who speaks: human, gpt, system, ...");
  if (!result.text) fail(at, "value", "", "what was said");
  return result;
}

/// Turns one conversation's messages into requests.
void read_messages(const place& at, json_value& list, std::uint32_t session, trace_builder& builder,
                   sharegpt_totals& totals) {
  if (!json_token(list).starts_with('[')) {
    fail(at, "conversations", json_token(list), "a list of messages");
  }
  conversation so_far;
  std::uint32_t previous = none;
  bool asked = false;
  for (auto element : list.get_array()) {
    const message said = read_message(at, element.get_object());
    if (said.from == speaker::user) asked = true;
    if (said.from == speaker::assistant && asked && !so_far.empty()) {
      asked = false;
      if (said.text->empty()) {
        ++totals.empty_answers;
        continue;
      }
      request r;
      r.after = previous;
      r.session = session;
      so_far.prompt(r, at, builder);
      r.output_tokens = checked_tokens(at, "value", said.text->size());
      previous = builder.size();
      builder.add(r, at);
    }
    so_far.append(*said.text);
  }
  totals.unanswered += asked ? 1U : 0U;
}

void note_totals(const sharegpt_totals& totals, trace_builder& builder) {
  builder.note("Lengths are estimates, 4 bytes a token: the file holds text only.");
  builder.note("The file has no times: conversations start at 0, turns follow without a pause.");
  if (totals.empty_answers > 0) {
    builder.note(std::to_string(totals.empty_answers) + " empty answers are left out.");
  }
  if (totals.unanswered > 0) {
    builder.note(std::to_string(totals.unanswered) +
                 " conversations end with a question; it is left out.");
  }
}

}  // namespace

trace read_sharegpt(text_source& source) {
  trace_builder builder(source.at().file, "sharegpt-json");
  builder.set_prefix_block(token_count{tokens_per_block});
  simdjson::ondemand::parser parser;
  sharegpt_totals totals;
  const std::string_view text = source.rest();
  // Lines say little in a file that often is one line: places count conversations.
  std::size_t number = 0;
  place at{source.at().file, 0};
  std::string where;
  with_json_errors(at, [&] {
    const simdjson::padded_string_view padded(text, text.size() + simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document = parser.iterate(padded);
    for (auto element : document.get_array()) {
      where = std::string(source.at().file) + ", conversation " + std::to_string(++number);
      at.file = where;
      const auto session = builder.intern(std::to_string(number));
      bool found = false;
      for_each_field(at, element.get_object(), [&](std::string_view key, json_value& value) {
        if (key != "conversations" && key != "messages") return;
        read_messages(at, value, session, builder, totals);
        found = true;
      });
      if (!found) fail(at, "conversations", "", "a list of messages");
    }
    if (!at_end(document)) fail(at, "has more behind its JSON array");
  });
  note_totals(totals, builder);
  return std::move(builder).finish();
}

}  // namespace octavo::traces
