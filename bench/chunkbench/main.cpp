/// chunkbench: which chunk shape and cache size suit a disk, measured and drawn.
#include <string>

#include <CLI/CLI.hpp>

#include "chunkbench/commands.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"

namespace {

using cli::ExitCode;

ExitCode run(int argc, char** argv) {
  CLI::App app("Measures which chunk size and cache size suit a disk, and draws what came out.",
               "chunkbench");
  cli::Action action;
  app.set_version_flag("--version", "chunkbench " CHUNKBENCH_VERSION "\n",
                       "Print the version and exit");
  app.require_subcommand(1);
  bench::add_sweep_command(app, action);
  bench::add_report_command(app, action);
  bench::add_confine_command(app, action, bench::take_program(argc, argv));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    cli::print(app.help());
    return ExitCode::ok;
  } catch (const CLI::CallForVersion& version) {
    cli::print(version.what());
    return ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    cli::print_error(std::string(error.what()) + "; see 'chunkbench --help'", "chunkbench");
    return ExitCode::usage;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  cli::run_main([&] { return run(argc, argv); }, bench::kChunkbench);
}
