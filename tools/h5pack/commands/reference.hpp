/// Makes completions for shells and manual pages from the parser, so that they name the options
/// that the program has.
///
/// Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace h5pack {

/// For bash 4 or newer, with or without the package bash-completion.
[[nodiscard]] std::string bash_completion(const CLI::App& program);
[[nodiscard]] std::string zsh_completion(const CLI::App& program);
[[nodiscard]] std::string fish_completion(const CLI::App& program);

/// Names (h5pack.1, h5pack-stream.1, ...) and texts of the pages of the program and its commands.
/// \param version  "0.1.0".
[[nodiscard]] std::vector<std::pair<std::string, std::string>> manual_pages(
    const CLI::App& program, const std::string& version);

}  // namespace h5pack
