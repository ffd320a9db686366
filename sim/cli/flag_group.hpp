// Flags of one group of a program's help.
#pragma once

#include <string>
#include <utility>

#include <CLI/CLI.hpp>

namespace octavo::sim {

/// Adds options to one group of the help. Of a flag given twice the last counts.
class flag_group {
 public:
  flag_group(CLI::App& app, std::string title) : app_(app), title_(std::move(title)) {}

  template <class T>
  CLI::Option* add(const std::string& name, T& target, const std::string& help) {
    auto* option = app_.add_option(name, target, help)->group(title_)->capture_default_str();
    // An empty text would be taken for 0, or for no value at all.
    option->check([](const std::string& value) {
      return value.empty() ? std::string{"a value is needed"} : std::string{};
    });
    return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  CLI::Option* add_flag(const std::string& name, bool& target, const std::string& help) {
    return app_.add_flag(name, target, help)
        ->group(title_)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

 private:
  CLI::App& app_;
  std::string title_;
};

}  // namespace octavo::sim
