// Reads the text steps of tokenizer.json.
#include "model/tokenizer/load_steps.hpp"

#include <string>
#include <utility>

#include "model/tokenizer/split_rules.hpp"

namespace octavo::model {
namespace {

/// Calls `visit(element)` for each element of the array under `key`.
template <class Visit>
void for_each_in(const json_field& field, std::string_view key, Visit&& visit) {
  const json_field list = field.at(key);
  std::size_t index = 0;
  for (const simdjson::dom::element one : list.array()) visit(list.element(index++, one));
}

[[noreturn]] void refuse_type(const json_field& field, const std::string& supported) {
  const json_field type = field.at("type");
  type.fail("is " + in_quotes(type.text()) + "; supported are " + supported);
}

/// A pattern {"Regex": ...} or {"String": ...}.
text_pattern load_pattern(const json_field& field) {
  if (field.is_text()) return text_pattern::literal(std::string(field.text()), field.where());
  if (const auto regex = field.find("Regex")) {
    return text_pattern::regex(regex->text(), regex->where());
  }
  const json_field literal = field.at("String");
  return text_pattern::literal(std::string(literal.text()), literal.where());
}

void add_normalizer(const json_field& field, normalizer& steps) {
  const std::string_view type = field.at("type").text();
  if (type == "Sequence") {
    for_each_in(field, "normalizers", [&](const json_field& one) { add_normalizer(one, steps); });
  } else if (type == "NFC") {
    steps.add(unicode_form::nfc);
  } else if (type == "NFD") {
    steps.add(unicode_form::nfd);
  } else if (type == "NFKC") {
    steps.add(unicode_form::nfkc);
  } else if (type == "NFKD") {
    steps.add(unicode_form::nfkd);
  } else if (type == "Prepend") {
    steps.add(prepend_step{std::string(field.at("prepend").text())});
  } else if (type == "Replace") {
    steps.add(
        replace_step{load_pattern(field.at("pattern")), std::string(field.at("content").text())});
  } else {
    refuse_type(field, "Sequence, NFC, NFD, NFKC, NFKD, Prepend and Replace");
  }
}

split_behavior behavior_of(const json_field& field) {
  const std::string_view name = field.text();
  if (name == "Removed") return split_behavior::removed;
  if (name == "Isolated") return split_behavior::isolated;
  if (name == "MergedWithPrevious") return split_behavior::merged_with_previous;
  if (name == "MergedWithNext") return split_behavior::merged_with_next;
  if (name == "Contiguous") return split_behavior::contiguous;
  field.fail("is " + in_quotes(name) +
             "; supported are Removed, Isolated, MergedWithPrevious, MergedWithNext and "
             "Contiguous");
}

/// Reads the pre-tokenizers in their order; some change the text and must be first,
/// and nothing can follow the change to bytes.
class pre_tokenizer_loader {
 public:
  void add(const json_field& field) {
    const std::string_view type = field.at("type").text();
    if (type == "Sequence") {
      for_each_in(field, "pretokenizers", [&](const json_field& one) { add(one); });
      return;
    }
    if (loaded_.byte_level) field.fail("follows a ByteLevel step, which must be the last");
    if (type == "ByteLevel") {
      add_byte_level(field);
    } else if (type == "Split") {
      add_split(field);
    } else if (type == "Metaspace") {
      add_metaspace(field);
    } else if (type == "Digits") {
      const bool each = field.flag_or("individual_digits", false);
      add_step(text_pattern::regex(each ? R"(\p{N})" : R"(\p{N}+)", field.where()));
    } else {
      refuse_type(field, "Sequence, ByteLevel, Split, Metaspace and Digits");
    }
  }

  loaded_pre_tokenizer take() { return std::move(loaded_); }

 private:
  void add_step(text_pattern pattern, split_behavior behavior = split_behavior::isolated,
                bool invert = false) {
    loaded_.pre.add({std::move(pattern), behavior, invert});
    first_ = false;
  }

  void prepare_by(const json_field& field, text_preparation preparation) {
    if (!first_) field.fail("changes the text after it has been split, which is not supported");
    loaded_.pre.prepare_by(std::move(preparation));
  }

  void add_byte_level(const json_field& field) {
    if (field.flag_or("add_prefix_space", true)) {
      prepare_by(field, {" ", prefix_scheme::always, true});
    }
    if (field.flag_or("use_regex", true)) {
      add_step(text_pattern::regex(gpt2_pattern, field.where()));
    }
    loaded_.byte_level = true;
  }

  void add_split(const json_field& field) {
    add_step(load_pattern(field.at("pattern")), behavior_of(field.at("behavior")),
             field.flag_or("invert", false));
  }

  void add_metaspace(const json_field& field) {
    const std::string replacement(field.text_or("replacement", visible_space));
    prepare_by(field, {replacement, scheme_of(field), false});
    if (field.flag_or("split", true)) {
      add_step(text_pattern::literal(replacement, field.where()), split_behavior::merged_with_next);
    }
    first_ = false;
  }

  static prefix_scheme scheme_of(const json_field& field) {
    const auto scheme = field.find("prepend_scheme");
    if (!scheme) {
      return field.flag_or("add_prefix_space", true) ? prefix_scheme::always : prefix_scheme::never;
    }
    const std::string_view name = scheme->text();
    if (name == "always") return prefix_scheme::always;
    if (name == "first") return prefix_scheme::first;
    if (name == "never") return prefix_scheme::never;
    scheme->fail("is " + in_quotes(name) + "; supported are always, first and never");
  }

  loaded_pre_tokenizer loaded_;
  bool first_ = true;
};

void load_template(const json_field& field, pipeline& parts) {
  const json_field specials = field.at("special_tokens");
  std::vector<token_id>* side = &parts.prefix;
  for_each_in(field, "single", [&](const json_field& item) {
    if (item.has("Sequence")) {
      side = &parts.suffix;
      return;
    }
    const json_field ids = specials.at(item.at("SpecialToken").at("id").text()).at("ids");
    std::size_t index = 0;
    for (const simdjson::dom::element id : ids.array()) {
      const auto last = static_cast<std::int64_t>(parts.entries.size()) - 1;
      side->push_back(static_cast<token_id>(ids.element(index++, id).integer(0, last)));
    }
  });
}

}  // namespace

normalizer load_normalizer(const json_field& field) {
  normalizer steps;
  add_normalizer(field, steps);
  return steps;
}

loaded_pre_tokenizer load_pre_tokenizer(const json_field& field) {
  pre_tokenizer_loader loader;
  loader.add(field);
  return loader.take();
}

void load_post_processor(const json_field& field, pipeline& parts) {
  const std::string_view type = field.at("type").text();
  if (type == "Sequence") {
    for_each_in(field, "processors",
                [&](const json_field& one) { load_post_processor(one, parts); });
  } else if (type == "TemplateProcessing") {
    load_template(field, parts);
  } else if (type != "ByteLevel") {  // ByteLevel only moves offsets
    refuse_type(field, "Sequence, TemplateProcessing and ByteLevel");
  }
}

bool load_decoder(const json_field& field) {
  const std::string_view type = field.at("type").text();
  if (type == "Sequence") {
    bool strips = false;
    for_each_in(field, "decoders",
                [&](const json_field& one) { strips = load_decoder(one) || strips; });
    return strips;
  }
  if (type == "Metaspace") {
    return field.text_or("prepend_scheme", "always") != "never" &&
           field.flag_or("add_prefix_space", true);
  }
  if (type == "Strip") {
    const bool one_space = field.at("content").text() == " " && field.at("stop").integer(0, 0) == 0;
    const std::int64_t start = field.at("start").integer(0, 1);
    if (!one_space) field.at("content").fail("is supported for a space only");
    return start == 1;
  }
  const bool by_pieces =
      type == "ByteLevel" || type == "ByteFallback" || type == "Fuse" || type == "Replace";
  if (!by_pieces) {
    refuse_type(field, "Sequence, ByteLevel, Metaspace, Replace, ByteFallback, Fuse and Strip");
  }
  return false;
}

}  // namespace octavo::model
