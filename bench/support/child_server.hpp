// A program that serves, run as a child process, and what /proc says of it: memory,
// processor time, open files.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace octavo::bench {

/// Runs from construction to destruction, and never longer than this process.
class child_server {
 public:
  /// Waits for the line "serving NAME at http://HOST:PORT" on its output. Throws
  /// std::runtime_error where it does not come within ten seconds.
  explicit child_server(std::vector<std::string> arguments) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe can be made");
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) run(std::move(arguments), ends[1], parent);
    ::close(ends[1]);
    output_ = ends[0];
    try {
      if (pid_ < 0) throw std::runtime_error("no process can be started");
      port_ = read_port();
    } catch (...) {
      stop();
      throw;
    }
  }
  ~child_server() { stop(); }
  child_server(const child_server&) = delete;
  child_server& operator=(const child_server&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  [[nodiscard]] std::int64_t resident_bytes() const {
    std::ifstream status{proc("status")};
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmRSS:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
    }
    throw std::runtime_error("the server has died");
  }

  /// Of all its threads, in user and kernel mode.
  [[nodiscard]] double processor_seconds() const {
    std::ifstream stat{proc("stat")};
    std::string all;
    std::getline(stat, all);
    // The name, field 2, may contain anything; times are fields 14 and 15.
    const char* at = all.c_str() + all.rfind(')');
    for (int field = 2; field < 14; ++field) {
      while (*at != ' ' && *at != '\0') ++at;
      if (*at == '\0') throw std::runtime_error("the server has died");
      ++at;
    }
    char* next = nullptr;
    const auto user = std::strtoll(at, &next, 10);
    const auto kernel = std::strtoll(next, nullptr, 10);
    return static_cast<double>(user + kernel) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  [[nodiscard]] int open_files() const {
    DIR* files = ::opendir(proc("fd").c_str());
    if (files == nullptr) throw std::runtime_error("the server has died");
    int count = 0;
    while (const dirent* file = ::readdir(files)) count += file->d_name[0] != '.';
    ::closedir(files);
    return count;
  }

 private:
  [[noreturn]] static void run(std::vector<std::string> arguments, int output, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(output, STDOUT_FILENO);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  std::uint16_t read_port() const {
    std::string text;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (text.find('\n') == std::string::npos) {
      const auto left = deadline - std::chrono::steady_clock::now();
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
      pollfd readable{output_, POLLIN, 0};
      if (ms <= 0 || ::poll(&readable, 1, static_cast<int>(ms)) <= 0) {
        throw std::runtime_error("the server did not start within ten seconds");
      }
      char piece[256];
      const auto got = ::read(output_, piece, sizeof piece);
      if (got <= 0) throw std::runtime_error("the server did not start");
      text.append(piece, static_cast<std::size_t>(got));
    }
    const auto colon = text.rfind(':');
    const auto port = colon == std::string::npos ? 0 : std::atoi(text.c_str() + colon + 1);
    if (port <= 0 || port > 65535) throw std::runtime_error("the server said: " + text);
    return static_cast<std::uint16_t>(port);
  }

  void stop() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(output_);
  }

  [[nodiscard]] std::string proc(const std::string& file) const {
    return "/proc/" + std::to_string(pid_) + "/" + file;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace octavo::bench
