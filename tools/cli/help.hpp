/// What --help shows: of a command two examples and the options that most people need, with
/// --help-all the rest; and what somebody meant who misspelled a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace cli {

/// Gives `command` the help that all commands of h5pack have. Those that are added to it inherit
/// it, without the examples.
/// \param examples  whole lines that can be pasted.
/// \param common    options that --help shows; empty: all. \pre `command` has them.
void set_help(CLI::App& command, std::vector<std::string> examples,
              std::vector<std::string> common = {});

/// The one of `names` that is most like `name`: up to a third of its letters, or two, are wrong,
/// missing, added or exchanged with their neighbour (the distance of Damerau and Levenshtein,
/// optimal string alignment); or it is a beginning of one name alone. Empty if there is none.
[[nodiscard]] std::string most_similar(std::string_view name,
                                       const std::vector<std::string>& names);

/// The examples that set_help() was given; none without a call. Pure.
[[nodiscard]] std::vector<std::string> examples_of(const CLI::App& command);

/// The values of an option that add_choice() made: "nhwc", "nchw"; none of another. Pure.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace cli
