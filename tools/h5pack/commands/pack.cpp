/// The four packing commands: folder, cifar, celeba, csv. Their options; pack_run.cpp does the
/// rest.
#include <memory>
#include <string>

#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/commands/pack_options.hpp"
#include "h5pack/pack/pack_request.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {

namespace {

/// What append has no use for: there is one file that it adds to.
void add_shard_options(CLI::App& app, PackRequest& command) {
  const cli::Heading heading(app, "File");
  auto* const shard = app.add_option_function<std::string>(
      "--shard", [&command](const std::string& text) { command.options.shard = parse_shard(text); },
      "Pack part I of N, from 0 to N - 1, into OUT-iiiii-of-nnnnn.h5: for parallel runs on any "
      "number of machines");
  shard->type_name("I/N");
  app.add_flag("--shard-from-env", command.shard_from_env,
               "Take I and N from torchrun, Open MPI, PMI or Slurm")
      ->excludes(shard);
}

/// Adds the packing command of one kind of source.
void add_pack_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action,
                      const SourceKind& kind) {
  CLI::App* const sub = app.add_subcommand(kind.name, std::string("Pack ") + kind.what);
  const auto command = std::make_shared<PackRequest>();
  command->name = kind.name;
  command->list = [&kind](const PackRequest& request) { return kind.list(request.source); };
  cli::add_required(*sub, kind.input_name, command->source.input, kind.input);
  cli::add_required(*sub, "-o,--output", command->output, kind.output, "OUT");
  add_pack_options(*sub, *command);
  add_shard_options(*sub, *command);
  add_source_options(*sub, kind, command->source);
  std::vector<std::string> common = {
      "--output", "--resize", "--center-crop", "--pad",     "--on-error", "--report", "--order",
      "--seed",   "--force",  "--resume",      "--threads", "--dry-run",  "--shard"};
  const std::vector<std::string> own = kind.flags();
  common.insert(common.begin() + 1, own.begin(), own.end());
  cli::set_help(*sub, {kind.examples.begin(), kind.examples.end()}, std::move(common));
  sub->callback([command, &global, &action] {
    finish_options(*command);
    action = [command, &global] { return run_pack(*command, global); };
  });
}

}  // namespace

void add_pack_commands(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  for (const SourceKind* kind : source_kinds()) add_pack_command(app, global, action, *kind);
}

}  // namespace h5pack
