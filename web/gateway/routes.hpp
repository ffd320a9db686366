// Which path does what.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "web/gateway/net/http.hpp"
#include "web/gateway/stream_answers.hpp"

namespace octavo::gateway {

struct route {
  std::string method;
  /// A last or middle part of "*" stands for any one part.
  std::string path;
  bool needs_key = true;
  std::function<void(const net::request&, answer_channel)> run;
};

class route_table {
 public:
  void add(route one) { routes_.push_back(std::move(one)); }
  /// HEAD is answered as GET. Throws api_error: 404 for a path that is not there, 405 with
  /// the methods that are allowed.
  [[nodiscard]] const route& find(const net::request& asked) const;
  /// The methods for a path, as "GET, HEAD"; empty for one that is not there.
  [[nodiscard]] std::string allowed(std::string_view path) const;

 private:
  std::vector<route> routes_;
};

/// Part number `index` of a path, percent-decoded: of "/v1/models/a%2Fb" part 2 is "a/b".
[[nodiscard]] std::string path_part(std::string_view path, std::size_t index);

}  // namespace octavo::gateway
