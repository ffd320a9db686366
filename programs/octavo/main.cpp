// `octavo`: one program, a command for each thing to do.
#include <iostream>
#include <string_view>

#include "model/command.hpp"
#include "programs/octavo/bench.hpp"
#include "programs/octavo/devices.hpp"
#include "programs/octavo/generate.hpp"
#include "programs/octavo/profile.hpp"
#include "programs/octavo/serve.hpp"
#include "traces/command.hpp"

namespace {

constexpr std::string_view help =
    R"(Serves large language models and plans for them with the same engine.

  octavo serve MODEL                   an OpenAI-compatible HTTP API and WebSocket
  octavo generate MODEL --prompt TEXT  continue a text with a model of your own
  octavo bench MODEL                   how fast it runs here: one stream, many, reading, mixed
  octavo devices                       what models can run on here
  octavo model inspect MODEL           a .gguf file or Hugging Face directory: shape, tensors
  octavo model get NAME                download a small model: smollm2, gemma3-270m
  octavo trace convert|inspect|synth   request traces: read any format, look inside, make one
  octavo profile measure MODEL         measure this machine for sim --profile
  octavo profile convert               public measurements into such a profile

The capacity planner is a program of its own: sim --help
)";

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "generate") {
    return octavo::generate_command({argv + 2, argv + argc}, std::cout, std::cerr);
  }
  if (command == "bench") {
    return octavo::bench_command({argv + 2, argv + argc}, std::cout, std::cerr);
  }
  if (command == "serve") {
    return octavo::serve_command({argv + 2, argv + argc}, std::cout, std::cerr);
  }
  if (command == "devices") {
    return octavo::devices_command({argv + 2, argv + argc}, std::cout, std::cerr);
  }
  if (command == "model") {
    return octavo::model::model_command(argc - 1, argv + 1, std::cout, std::cerr);
  }
  if (command == "trace") {
    return octavo::traces::trace_command(argc - 1, argv + 1, std::cout, std::cerr);
  }
  if (command == "profile") {
    return octavo::profile_command({argv + 2, argv + argc}, std::cout, std::cerr);
  }
  if (command == "--version") {
    std::cout << "octavo " OCTAVO_VERSION "\n";
    return 0;
  }
  if (command.empty() || command == "--help" || command == "-h" || command == "help") {
    std::cout << help;
    return command.empty() ? 2 : 0;
  }
  std::cerr
      << "octavo: '" << command
      << "' is no command; there are: serve, generate, bench, devices, model, trace, profile\n";
  return 2;
}
