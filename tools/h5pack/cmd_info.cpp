/// h5pack info: what a file holds and whether its chunking suits training.
#include <memory>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/inspection.hpp>
#include <chunkio/json.hpp>

#include "command.hpp"
#include "help.hpp"
#include "options.hpp"
#include "output.hpp"
#include "render_text.hpp"
#include "structure_check.hpp"

namespace h5pack {
namespace {

struct InfoOptions {
  std::string file = {};
  chunkio::OpenOptions open = {};
};

}  // namespace

void add_info_command(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* const command =
      app.add_subcommand("info", "Show what a file holds, and whether its chunks suit training");
  const auto options = std::make_shared<InfoOptions>();
  command->add_option("FILE", options->file, "An HDF5 file, or shards: 'train-*-of-00008.h5'")
      ->required()
      ->type_name("");
  add_open_options(*command, options->open);
  set_help(*command, {"h5pack info train.h5", "h5pack info third-party.h5 --images x_train"});
  command->callback([&global, &action, options] {
    action = [&global, options] {
      const chunkio::Inspection found =
          inspect(chunkio::Dataset::open(options->file, options->open));
      warn_of_damage(found.dataset);
      print(global.json ? chunkio::to_json(found) + "\n" : info_text(found, use_colour(stdout)));
      return ExitCode::ok;
    };
  });
}

}  // namespace h5pack
