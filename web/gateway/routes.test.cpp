// Paths and methods to routes, and what is wrong told apart.
#include "web/gateway/routes.hpp"

#include <string>

#include "tests/support/catch.hpp"
#include "web/gateway/api/api_error.hpp"

using namespace octavo;
using namespace octavo::gateway;

namespace {

std::string found(const route_table& table, const std::string& method, const std::string& path) {
  net::request asked;
  asked.method = method;
  asked.path = path;
  try {
    return table.find(asked).path;
  } catch (const api::api_error& why) {
    return std::to_string(why.status);
  }
}

}  // namespace

TEST_CASE("a route is found by method and path, and what is wrong is told apart") {
  route_table table;
  table.add({"GET", "/v1/models", true, {}});
  table.add({"GET", "/v1/models/*", true, {}});
  table.add({"POST", "/v1/requests/*/explain", true, {}});
  CHECK(found(table, "GET", "/v1/models") == "/v1/models");
  CHECK(found(table, "HEAD", "/v1/models") == "/v1/models");
  CHECK(found(table, "GET", "/v1/models/a") == "/v1/models/*");
  CHECK(found(table, "GET", "/v1/models/") == "404");
  CHECK(found(table, "GET", "/v1/models/a/b") == "404");
  CHECK(found(table, "POST", "/v1/requests/x/explain") == "/v1/requests/*/explain");
  CHECK(found(table, "DELETE", "/v1/models") == "405");
  CHECK(found(table, "GET", "/") == "404");
  CHECK(table.allowed("/v1/models/a") == "GET, HEAD");
  CHECK(table.allowed("/v1/requests/x/explain") == "POST");
  CHECK(table.allowed("/").empty());
}

TEST_CASE("parts of a path are percent-decoded") {
  CHECK(path_part("/v1/models/a%2Fb%20c", 2) == "a/b c");
  CHECK(path_part("/v1/models/100%", 2) == "100%");
  CHECK(path_part("/v1/models/%zz", 2) == "%zz");
  CHECK(path_part("/v1", 5).empty());
}
