/// h5pack link: one file in which other programs find all shards of a dataset.
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "cli/command.hpp"
#include "cli/escape.hpp"
#include "cli/help.hpp"
#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/quote.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/dataset/structure_check.hpp"

namespace h5pack {
namespace {

struct LinkCommand {
  std::string pattern = {};
  std::string output = {};
  chunkio::OpenOptions open = {};
  bool force = false;
};

cli::ExitCode run_link(const LinkCommand& command, const cli::GlobalOptions& global) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(command.pattern, command.open);
  refuse_damaged(dataset.info());
  if (dataset.info().sparse) {
    throw chunkio::Error(chunkio::ErrorCode::unsupported,
                         cli::quote(command.pattern) +
                             " holds a sparse matrix, and rows of different length cannot be "
                             "linked; open the shards by this pattern, or write them as one file: "
                             "h5pack csr PATTERN -o OUT");
  }
  chunkio::link_shards(dataset, command.output, {.overwrite = command.force});
  if (global.json) {
    const nlohmann::ordered_json json = {{"path", command.output},
                                         {"shards", dataset.info().shards.size()},
                                         {"images", dataset.size()}};
    cli::print(cli::json_text(json) + "\n");
  } else {
    cli::print(cli::escape(command.output) + ": " + std::to_string(dataset.size()) + " images of " +
               std::to_string(dataset.info().shards.size()) + " files\n");
  }
  return cli::ExitCode::ok;
}

}  // namespace

void add_link_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command = app.add_subcommand(
      "link", "Join shards into one virtual dataset, for h5py and other programs");
  const auto options = std::make_shared<LinkCommand>();
  cli::add_required(*command, "PATTERN", options->pattern,
                    "The shards, quoted: 'train-*-of-00008.h5'");
  cli::add_required(*command, "-o,--output", options->output, "File to write, beside the shards",
                    "OUT");
  command->add_flag("-f,--force", options->force, "Replace an existing file");
  cli::add_open_options(*command, options->open);
  cli::set_help(*command, {"h5pack link 'train-*-of-00008.h5' -o train.h5",
                           "h5pack link 'train-*-of-00008.h5' -o train.h5 --force"});
  command->callback([&global, &action, options] {
    action = [&global, options] { return run_link(*options, global); };
  });
}

}  // namespace h5pack
