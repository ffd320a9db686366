// A SAX handler that builds the document and refuses what the header says.
#include "model/strict_json.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "core/error.hpp"

namespace octavo::model {
namespace {

using nlohmann::json;

class builder {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  builder(const std::string& where, int depth_max) : where_(where), depth_max_(depth_max) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) { return add(value); }
  bool string(string_t& value) { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*elements*/) { return open(json::object()); }
  bool start_array(std::size_t /*elements*/) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    if (open_.back()->contains(name)) fail("key \"" + name + "\" occurs twice in one object");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) {
    fail("not valid JSON (at byte " + std::to_string(position) + ")");
  }

  json take() { return std::move(root_); }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw input_error(where_ + ": " + why); }

  json* place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    json& slot = parent[key_];
    slot = std::move(value);
    return &slot;
  }

  bool add(json value) {
    place(std::move(value));
    return true;
  }

  bool open(json value) {
    if (static_cast<int>(open_.size()) >= depth_max_) {
      fail("nested deeper than " + std::to_string(depth_max_) + " levels");
    }
    // A parent does not move while its last element is open.
    open_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& where_;
  int depth_max_;
  json root_;
  std::vector<json*> open_;
  std::string key_;
};

}  // namespace

json parse_strict_json(std::string_view text, const std::string& where, int depth_max) {
  // The library takes a NUL for the end of the text.
  const auto nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw input_error(where + ": not valid JSON (a NUL at byte " + std::to_string(nul) + ")");
  }
  builder handler(where, depth_max);
  json::sax_parse(text, &handler);
  return handler.take();
}

json load_json_file(const std::string& path, std::size_t bytes_max) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > bytes_max) {
    throw input_error(path + ": has " + std::to_string(size) + " bytes; up to " +
                      std::to_string(bytes_max) + " are read");
  }
  std::ifstream file{path, std::ios::binary};
  if (error || !file) throw input_error(path + ": cannot be opened");
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  return parse_strict_json(text, path, 64);
}

}  // namespace octavo::model
