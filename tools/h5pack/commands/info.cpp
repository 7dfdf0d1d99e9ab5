/// h5pack info: what a file holds and whether its chunking suits training.
#include <memory>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tuning.hpp>

#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/dataset/structure_check.hpp"
#include "h5pack/report/report.hpp"

namespace h5pack {
namespace {

struct InfoOptions {
  std::string file = {};
  chunkio::OpenOptions open = {};
};

}  // namespace

void add_info_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command =
      app.add_subcommand("info", "Show what a file holds, and whether its chunks suit training");
  const auto options = std::make_shared<InfoOptions>();
  cli::add_file_or_shards(*command, options->file);
  cli::add_open_options(*command, options->open);
  cli::set_help(*command, {"h5pack info train.h5", "h5pack info third-party.h5 --images x_train"});
  command->callback([&global, &action, options] {
    action = [&global, options] {
      const chunkio::Inspection found =
          inspect(chunkio::Dataset::open(options->file, options->open));
      warn_of_damage(found.dataset);
      cli::print(global.json ? chunkio::to_json(found) + "\n"
                             : info_text(found, cli::use_colour(stdout)));
      return cli::ExitCode::ok;
    };
  });
}

}  // namespace h5pack
