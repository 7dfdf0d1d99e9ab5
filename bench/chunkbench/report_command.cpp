#include <memory>
#include <string>

#include <chunkio/error.hpp>

#include "chunkbench/commands.hpp"
#include "chunkbench/number_format.hpp"
#include "chunkbench/report_page.hpp"
#include "chunkbench/results.hpp"
#include "chunkbench/results_files.hpp"
#include "cli/atomic_file.hpp"
#include "cli/output.hpp"
#include "cli/quote.hpp"

namespace bench {
namespace {

struct ReportOptions {
  std::string results = {};
  std::string output = {};
  bool force = false;
};

void report(const ReportOptions& options) {
  if (is_same_file(options.results, options.output)) {
    throw chunkio::Error(
        chunkio::ErrorCode::invalid_argument,
        cli::quote(options.output) + " is the file of results itself; choose another -o");
  }
  cli::check_atomic_file(options.output, options.force);
  const Results results = read_results(options.results);
  const std::size_t bytes = write_report_page(results, options.output, options.force);
  cli::print(cli::escape(options.output) + ": " +
             plural(static_cast<std::int64_t>(results.cells.size()), "cell") + ", " +
             size_text(static_cast<std::int64_t>(bytes)) +
             (results.complete ? "\n" : "; these results are not complete\n"));
}

}  // namespace

void add_report_command(CLI::App& app, cli::Action& action) {
  CLI::App* const command =
      app.add_subcommand("report", "Draw the results of a sweep as one HTML page");
  const auto options = std::make_shared<ReportOptions>();
  command->add_option("RESULTS", options->results, "What 'chunkbench sweep --output' wrote (JSON)")
      ->required()
      ->type_name("");
  command->add_option("-o,--output", options->output, "The page to write")
      ->required()
      ->type_name("PAGE.html");
  command->add_flag("--force", options->force, "Replace an existing page");
  command->callback([&action, options] {
    action = [options] {
      report(*options);
      return cli::ExitCode::ok;
    };
  });
}

}  // namespace bench
