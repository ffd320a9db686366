// The two errors that reach a person: input that cannot be used, and a
// configuration that cannot work. Programs turn them into exit codes 2 and 3.
#pragma once

#include <stdexcept>
#include <string>

namespace octavo {

/// Input that cannot be used. The message names the file, line or field, what
/// was found and what is allowed. Exit code 2.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A well-formed question whose answer is "impossible": a model that does not
/// fit, heads that do not divide. The message shows the arithmetic. Exit code 3.
struct infeasible_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace octavo
