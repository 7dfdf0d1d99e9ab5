/// The parser of h5pack with all of its commands.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace h5pack {

/// The parser with all commands, and what the parse sets.
class Program {
 public:
  Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] CLI::App& app() noexcept { return app_; }
  /// Runs the command that was parsed. \pre app().parse() has returned. \throws as the command.
  [[nodiscard]] cli::ExitCode run() const { return action_(); }

 private:
  CLI::App app_;
  cli::GlobalOptions global_;
  cli::Action action_;
};

/// Each exit code and what it means, as users read it: "0", "done". Pure.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> exit_codes();

/// Each adds its subcommand(s) to `app` and, when chosen, sets `action`. The references outlive the
/// call.
void add_pack_commands(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_csr_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_info_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_tune_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_index_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_link_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_doctor_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_stream_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_preview_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_verify_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_export_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_repack_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);
void add_append_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action);

}  // namespace h5pack
