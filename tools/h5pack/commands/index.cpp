/// h5pack index: what opening remote files reads, in one local file.
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

#include "cli/byte_size.hpp"
#include "cli/command.hpp"
#include "cli/escape.hpp"
#include "cli/help.hpp"
#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "h5pack/commands/commands.hpp"

namespace h5pack {
namespace {

struct IndexCommand {
  std::string address = {};
  std::string output = {};
  chunkio::OpenOptions open = {};
  bool force = false;
};

cli::ExitCode run_index(const IndexCommand& command, const cli::GlobalOptions& global) {
  const std::int64_t bytes =
      chunkio::save_remote_index(command.address, command.output, command.open, command.force);
  if (global.json) {
    const nlohmann::ordered_json json = {{"path", command.output}, {"bytes", bytes}};
    cli::print(cli::json_text(json) + "\n");
  } else {
    cli::print(cli::escape(command.output) + ": " + cli::format_bytes(bytes) +
               "; pass it as --remote-index\n");
  }
  return cli::ExitCode::ok;
}

}  // namespace

void add_index_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command = app.add_subcommand(
      "index", "Keep what opening remote files reads, so that they open by one request each");
  const auto options = std::make_shared<IndexCommand>();
  cli::add_required(
      *command, "URL", options->address,
      "https:// or s3://, or a pattern of several: 's3://bucket/train-*-of-00008.h5'");
  cli::add_required(*command, "-o,--output", options->output, "Local file to write", "OUT");
  command->add_flag("-f,--force", options->force, "Replace an existing file");
  cli::add_open_options(*command, options->open);
  // They say nothing of what is kept.
  for (const char* const name :
       {"--crop", "--decode", "--allow-external", "--trust", "--remote-index"}) {
    command->remove_option(command->get_option(name));
  }
  cli::set_help(*command, {"h5pack index https://host/third-party.h5 -o third-party.index",
                           "h5pack index 's3://bucket/train-*-of-00008.h5' -o train.index"});
  command->callback([&global, &action, options] {
    action = [&global, options] { return run_index(*options, global); };
  });
}

}  // namespace h5pack
