// Command line of `octavo model`; see command.hpp.
#include "model/command.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "core/error.hpp"
#include "model/container/checkpoint.hpp"
#include "model/fetch.hpp"
#include "model/inspect.hpp"

namespace octavo::model {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_input = 2;

struct arguments {
  std::string path;
  bool json = false;
  std::string name;
};

void add_commands(CLI::App& app, arguments& a) {
  app.require_subcommand(1);
  auto* inspect = app.add_subcommand("inspect", "Show a model's shape, tensors and tokenizer");
  inspect->add_option("MODEL", a.path, "a .gguf file, or a Hugging Face directory")->required();
  inspect->add_flag("--json", a.json, "print one JSON object");
  std::string known = "Download a small model and print its path:";
  for (const downloadable_model& model : downloadable_models()) {
    known += " " + model.name + " (" + model.description + ")";
  }
  auto* get = app.add_subcommand("get", known);
  get->add_option("NAME", a.name, "which model")->required();
}

void inspect(const arguments& a, std::ostream& out) {
  const checkpoint model = checkpoint::open(a.path);
  if (a.json) {
    // Names may hold bytes that are no UTF-8; they are shown as U+FFFD.
    out << inspection_json(model).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << '\n';
  } else {
    out << inspection_table(model);
  }
}

}  // namespace

int model_command(int argc, char** argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Look into models on disk and fetch small ones",
               argc > 0 ? argv[0] : "octavo model");
  arguments a;
  add_commands(app, a);
  try {
    app.parse(argc, argv);
    if (app.got_subcommand("inspect")) inspect(a, out);
    if (app.got_subcommand("get")) {
      out << fetch(find_downloadable(a.name), cache_folder(), err) << '\n';
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? 0 : exit_input;
  } catch (const input_error& error) {
    err << "error: " << error.what() << '\n';
    return exit_input;
  } catch (const fetch_error& error) {
    err << "error: " << error.what() << '\n';
    return exit_failed;
  }
  return 0;
}

}  // namespace octavo::model
