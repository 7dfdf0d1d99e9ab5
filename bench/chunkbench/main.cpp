/// chunkbench: which chunk shape and cache size suit a disk, measured and drawn.
#include <unistd.h>

#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include "command.hpp"
#include "confine_command.hpp"
#include "output.hpp"
#include "program.hpp"
#include "report.hpp"
#include "sweep_command.hpp"

namespace {

using h5pack::ExitCode;

ExitCode run(int argc, char** argv) {
  CLI::App app("Measures which chunk size and cache size suit a disk, and draws what came out.",
               "chunkbench");
  h5pack::Action action;
  app.set_version_flag("--version", "chunkbench " CHUNKBENCH_VERSION "\n",
                       "Print the version and exit");
  app.require_subcommand(1);
  bench::add_sweep_command(app, action);
  bench::add_report_command(app, action);
  bench::add_confine_command(app, action, bench::take_program(argc, argv));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    h5pack::print(app.help());
    return ExitCode::ok;
  } catch (const CLI::CallForVersion& version) {
    h5pack::print(version.what());
    return ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    bench::print_error(std::string(error.what()) + "; see 'chunkbench --help'");
    return ExitCode::usage;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  h5pack::prepare_standard_streams();
  const int code = bench::run_or_report([&] { return run(argc, argv); });
  // As h5pack: libhdf5's exit handler is not to be trusted after an error of the disk.
  std::fflush(nullptr);
  ::_exit(code);
}
