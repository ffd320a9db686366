// `octavo profile convert`: public measurements into an octavo.profile/1 file.
#include <CLI/CLI.hpp>
#include <fstream>
#include <ostream>

#include "core/error.hpp"
#include "sim/catalogue/catalogue.hpp"
#include "sim/cost/convert.hpp"

namespace octavo::sim {
namespace {

struct convert_options {
  std::string from;
  std::string mlp;
  std::string attention;
  std::string all_reduce;
  std::string prefix;
  std::string model;
  std::string gpu = "unnamed GPU";
  std::string out;
  int tp = 1;
};

void describe(CLI::App& app, convert_options& options) {
  app.add_option("--from", options.from, "the set's form: vidur or llmservingsim")
      ->required()
      ->check(CLI::IsMember({"vidur", "llmservingsim"}));
  app.add_option("--model", options.model, "catalogue name or config.json")->required();
  app.add_option("--gpu", options.gpu, "what was measured on, for the record");
  app.add_option("--tensor-parallel-size,--tp", options.tp, "degree to convert")
      ->check(CLI::Range(1, 1024));
  app.add_option("--mlp", options.mlp, "vidur: mlp.csv");
  app.add_option("--attention", options.attention, "vidur: attention.csv");
  app.add_option("--all-reduce", options.all_reduce, "vidur: all_reduce.csv, where tp > 1");
  app.add_option("--prefix", options.prefix,
                 "llmservingsim: folder, or path before _dense.csv, _attention.csv, …");
  app.add_option("--out", options.out, "profile to write")->required();
}

profile convert(const convert_options& options) {
  const model::model_config config = find_model(options.model);
  if (options.from == "llmservingsim") {
    if (options.prefix.empty()) throw input_error("--from llmservingsim needs --prefix");
    return convert_llmservingsim(options.prefix, config, options.tp, options.gpu);
  }
  if (options.mlp.empty() || options.attention.empty()) {
    throw input_error("--from vidur needs --mlp and --attention");
  }
  return convert_vidur(options.mlp, options.attention, config, options.tp, options.gpu,
                       options.all_reduce);
}

void write(const profile& result, const std::string& path) {
  std::ofstream file{path, std::ios::binary};
  file << to_json(result);
  file.flush();
  if (!file) throw input_error(path + ": cannot be written");
}

}  // namespace

int profile_command(int argc, char** argv, std::ostream& out, std::ostream& err) {
  CLI::App app{
      "Measured profiles for sim --profile.\n"
      "octavo profile measure MODEL --out FILE measures a model on this machine.",
      "octavo profile"};
  app.require_subcommand(1);
  CLI::App& sub = *app.add_subcommand("convert", "turn public measurements into a profile");
  convert_options options;
  describe(sub, options);
  try {
    app.parse(argc, argv);
    const profile result = convert(options);
    write(result, options.out);
    out << options.out << ": " << result.model << " on " << result.gpu << ", tp " << result.tp
        << ", " << result.dense.size() << " dense operations, "
        << result.attention_decode.values().size() << " decode, "
        << result.attention_prefill.values().size() << " prefill and "
        << result.attention_mixed.values().size() << " mixed attention points ("
        << result.provenance << ")\n";
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? 0 : 2;
  } catch (const input_error& error) {
    err << "error: " << error.what() << '\n';
    return 2;
  } catch (const infeasible_error& error) {
    err << "error: " << error.what() << '\n';
    return 3;
  }
}

}  // namespace octavo::sim
