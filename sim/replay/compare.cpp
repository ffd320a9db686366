// Naming the first difference of two records: see compare.hpp. Both are written
// out as (name, value) pairs, which are then compared in order. Only done once a
// difference is known, so it need not be fast.
#include "sim/replay/compare.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/replay/text.hpp"

namespace octavo::sim {
namespace {

class field_list {
 public:
  void put(std::string name, std::string value) {
    fields_.emplace_back(prefix_ + std::move(name), std::move(value));
  }
  void put(std::string name, std::int64_t value) { put(std::move(name), std::to_string(value)); }
  void put(const std::string& name, const sequence_name& who) {
    put(name + "request", static_cast<std::int64_t>(who.request.raw()));
    put(name + "sample", who.sample);
  }

  /// A list's entries, then how many there are: where another list goes on, the
  /// pair of names says which of the two is shorter.
  template <class Entry, class Write>
  void put_list(const std::string& name, const std::vector<Entry>& entries, Write write) {
    const std::string outer = prefix_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      prefix_ = outer + name + '[' + std::to_string(i) + "].";
      write(*this, entries[i]);
    }
    prefix_ = outer;
    put(name + ".count", static_cast<std::int64_t>(entries.size()));
  }

  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& fields() const {
    return fields_;
  }

 private:
  std::string prefix_;
  std::vector<std::pair<std::string, std::string>> fields_;
};

void put_input(field_list& out, const logged_input& input) {
  out.put("kind", std::string{name_of(input.kind)});
  out.put("stamp", input.stamp.raw());
  out.put("request", static_cast<std::int64_t>(
                         (input.kind == input_kind::submit ? input.spec.id : input.request).raw()));
  out.put("prompt_tokens", input.spec.prompt_tokens.raw());
  out.put("max_tokens", input.spec.max_tokens.raw());
  out.put("priority", input.spec.priority);
  out.put("n", input.spec.n);
  out.put_list("keys", input.spec.keys,
               [](field_list& o, const block_key& key) { o.put("key", to_hex(key)); });
  out.put("step", static_cast<std::int64_t>(input.step.raw()));
  out.put("status", input.result.status == step_status::ok ? "ok" : "failed");
  out.put_list("finishes", input.result.finishes, [](field_list& o, const sequence_finish& f) {
    o.put("work", f.work);
    o.put("sample", f.sample);
    o.put("kind", std::string{name_of(f.kind)});
  });
  out.put_list("output_keys", input.result.output_keys, [](field_list& o, const auto& named) {
    o.put("work", named.first);
    o.put("key", to_hex(named.second));
  });
}

template <class Entry>
void put_reasoned(field_list& out, const Entry& entry) {
  out.put("", entry.who);
  out.put("reason", std::string{to_string(entry.why)});
  out.put("a", entry.a);
  out.put("b", entry.b);
}

field_list fields_of(const logged_step& step) {
  const decision_record& d = step.decisions;
  field_list out;
  out.put_list("inputs", step.inputs, put_input);
  out.put("step", static_cast<std::int64_t>(d.step.raw()));
  out.put("now", d.now.raw());
  out.put("budget", d.budget.raw());
  out.put_list("ran", d.ran, [](field_list& o, const ran_record& r) {
    o.put("", r.who);
    o.put("decode", r.decode ? "yes" : "no");
    o.put("tokens", r.tokens.raw());
    o.put("padding", r.padding.raw());
  });
  out.put_list("admitted", d.admitted, [](field_list& o, const admitted_record& a) {
    o.put("", a.who);
    o.put("reason", std::string{to_string(a.why)});
    o.put("hit_tokens", a.hit_tokens.raw());
  });
  out.put_list("preempted", d.preempted, [](field_list& o, const preempted_record& p) {
    o.put("victim.", p.victim);
    o.put("requester.", p.requester);
  });
  out.put_list("finished", d.finished, put_reasoned<finished_record>);
  out.put_list("held", d.held, put_reasoned<held_record>);
  out.put("behind", d.behind);
  out.put("free", d.free.raw());
  out.put("used", d.used.raw());
  return out;
}

}  // namespace

std::optional<field_difference> first_difference(const logged_step& logged,
                                                 const logged_step& replayed) {
  const field_list a = fields_of(logged);
  const field_list b = fields_of(replayed);
  const std::size_t common = std::min(a.fields().size(), b.fields().size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto& [name, value] = a.fields()[i];
    const auto& [other_name, other_value] = b.fields()[i];
    if (name == other_name && value == other_value) continue;
    if (name == other_name) return field_difference{name, value, other_value};
    if (name.ends_with(".count")) return field_difference{other_name, "nothing", other_value};
    return field_difference{name, value, "nothing"};
  }
  return std::nullopt;
}

}  // namespace octavo::sim
