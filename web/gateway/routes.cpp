// Which path does what: see routes.hpp.
#include "web/gateway/routes.hpp"

#include <charconv>

#include "web/gateway/api/api_error.hpp"

namespace octavo::gateway {
namespace {

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto end = path.find('/');
    parts.push_back(path.substr(0, end));
    if (end == std::string_view::npos) break;
    path.remove_prefix(end);
  }
  return parts;
}

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern == path) return true;
  if (pattern.find('*') == std::string_view::npos) return false;
  const auto wanted = parts_of(pattern);
  const auto given = parts_of(path);
  if (wanted.size() != given.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != given[i] && (wanted[i] != "*" || given[i].empty())) return false;
  }
  return true;
}

}  // namespace

const route& route_table::find(const net::request& asked) const {
  const std::string_view method = asked.method == "HEAD" ? std::string_view{"GET"} : asked.method;
  for (const route& one : routes_) {
    if (one.method == method && matches(one.path, asked.path)) return one;
  }
  const std::string right = allowed(asked.path);
  if (right.empty()) throw api::not_found("there is nothing at " + asked.path);
  api::api_error why =
      api::invalid_request("", asked.method + " is not for " + asked.path + "; " + right + " is");
  why.status = 405;
  throw why;
}

std::string route_table::allowed(std::string_view path) const {
  std::string methods;
  for (const route& one : routes_) {
    if (!matches(one.path, path)) continue;
    methods += (methods.empty() ? "" : ", ") + one.method;
    if (one.method == "GET") methods += ", HEAD";
  }
  return methods;
}

std::string path_part(std::string_view path, std::size_t index) {
  const auto parts = parts_of(path);
  if (index >= parts.size()) return {};
  const std::string_view part = parts[index];
  std::string decoded;
  for (std::size_t i = 0; i < part.size(); ++i) {
    unsigned value = 0;
    const char* at = part.data() + i + 1;
    if (part[i] == '%' && i + 2 < part.size() &&
        std::from_chars(at, at + 2, value, 16).ptr == at + 2) {
      decoded += static_cast<char>(value);
      i += 2;
    } else {
      decoded += part[i];
    }
  }
  return decoded;
}

}  // namespace octavo::gateway
