// The command line of `octavo model`: look into a model on disk, or fetch a
// small one.
#pragma once

#include <iosfwd>

namespace octavo::model {

/// `argv[0]` is the command's own name. Returns the exit code: 0, 1 where a
/// download failed, 2 for input that cannot be used.
int model_command(int argc, char** argv, std::ostream& out, std::ostream& err);

}  // namespace octavo::model
