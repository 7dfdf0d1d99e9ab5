/// The program as its parser knows it: for main, and for what is generated from it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "command.hpp"

namespace h5pack {

/// The parser with all commands, and what the parse sets.
class Program {
 public:
  Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] CLI::App& app() noexcept { return app_; }
  /// Runs the command that was parsed. \pre app().parse() has returned. \throws as the command.
  [[nodiscard]] ExitCode run() const { return action_(); }

 private:
  CLI::App app_;
  GlobalOptions global_;
  Action action_;
};

/// Each exit code and what it means, as users read it: "0", "done". Pure.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> exit_codes();

}  // namespace h5pack
