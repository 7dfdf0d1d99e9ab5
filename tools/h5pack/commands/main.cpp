/// Parses the command line, runs the chosen subcommand, and turns every failure into one line and
/// an exit code.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <tbb/version.h>

#include <chunkio/error.hpp>
#include <chunkio/version.hpp>

#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/output.hpp"
#include "cli/run_main.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/commands/old_spellings.hpp"
#include "h5pack/image/image_codecs.hpp"

namespace {

using cli::ExitCode;

/// --json counts even if parsing ended before CLI11 came to it.
bool asks_for_json(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](const std::string& word) { return word == "--json"; });
}

/// The command whose help is worth reading: "h5pack" or "h5pack stream".
std::string command_name(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "h5pack" : "h5pack " + chosen.back()->get_name();
}

/// Whether a chosen command, or one of its own, takes the flag.
bool knows(const CLI::App& app, const std::string& flag) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return std::any_of(chosen.begin(), chosen.end(), [&](const CLI::App* command) {
    return command->get_option_no_throw(flag) != nullptr || knows(*command, flag);
  });
}

/// The chosen command, or the one of its own that was chosen.
const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_command(*chosen.back());
}

/// Names of what could have been meant by an unknown command, or option, of `command`.
std::vector<std::string> known_names(const CLI::App& command, bool options) {
  std::vector<std::string> names;
  if (!options) {
    for (const CLI::App* each : command.get_subcommands({})) names.push_back(each->get_name());
    return names;
  }
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

/// CLI11's text, except that an unknown command or option is named first, and what it may mean.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  const CLI::App& command = chosen_command(app);
  const bool takes_command = !command.get_subcommands({}).empty();
  // Behind an unknown command all options are unknown, too.
  const bool unknown_command =
      takes_command && !unknown.empty() && !unknown.front().starts_with('-');
  const auto option = std::find_if(unknown.begin(), unknown.end(), [](const std::string& word) {
    return word.starts_with('-') && word != "--";
  });
  const bool is_option = option != unknown.end() && !unknown_command;
  if (!is_option && !unknown_command) {
    return takes_command && &command == &app ? "name a command, such as folder or stream"
                                             : error.what();
  }
  const std::string word = is_option ? option->substr(0, option->find('=')) : unknown.front();
  const std::vector<std::string> known = known_names(command, is_option);
  // Behind "--" an option is a word that is too many.
  if (std::find(known.begin(), known.end(), word) != known.end()) return error.what();
  const std::string meant = cli::most_similar(word, known);
  return std::string("there is no ") + (is_option ? "option" : "command") + " '" + word + "'" +
         (meant.empty() ? "" : " (did you mean " + meant + "?)");
}

/// What --version prints: a line each on h5pack, its libraries and its image formats. Loads the
/// codecs.
std::string versions_text() {
  std::string text = "h5pack " + std::string(chunkio::version()) + "\n";
  std::string cuda = "none";
  const auto add = [&](const chunkio::LibraryVersion& library) {
    text += cli::labelled(library.name, library.version, false);
  };
  for (const chunkio::LibraryVersion& library : chunkio::library_versions()) {
    if (library.name == "CUDA") {
      cuda = library.version;
    } else {
      add(library);
    }
  }
  // What runs may be newer than what this was built with.
  add({.name = "oneTBB", .version = TBB_runtime_version()});
  for (const chunkio::LibraryVersion& library : h5pack::image_libraries()) add(library);
  add({.name = "CUDA", .version = cuda});
  try {
    return text + cli::labelled("images", h5pack::image_formats_text(), false);
  } catch (const chunkio::Error& error) {
    return text + cli::labelled("images", std::string("JPEG; ") + error.what(), false);
  }
}

ExitCode parse_and_run(h5pack::Program& program, int argc, char** argv, bool json) {
  CLI::App& app = program.app();
  try {
    h5pack::CommandLine line = h5pack::with_todays_spellings({argv + 1, argv + argc});
    // CLI11 takes them from the back.
    app.parse(std::vector(line.arguments.rbegin(), line.arguments.rend()));
    for (const std::string& warning : line.warnings) cli::print_warning(warning);
    h5pack::use_one_thread_an_image();
    return program.run();
  } catch (const CLI::CallForHelp&) {
    cli::print(app.help());
  } catch (const CLI::CallForAllHelp&) {
    cli::print(app.help("", CLI::AppFormatMode::All));
  } catch (const CLI::CallForVersion&) {
    cli::print(versions_text());
  } catch (const CLI::ParseError& error) {
    cli::print_failure(
        "usage", usage_problem(app, error) + "; see '" + command_name(app) + " --help'", json);
    return ExitCode::usage;
  }
  return ExitCode::ok;
}

ExitCode run(int argc, char** argv) {
  h5pack::Program program;
  if (argc == 1) {
    std::fputs(program.app().help().c_str(), stderr);
    return ExitCode::usage;
  }
  const bool json = asks_for_json(argc, argv);
  const auto accepted = [&](const std::string& flag) { return knows(program.app(), flag); };
  return cli::run_or_report([&] { return parse_and_run(program, argc, argv, json); },
                            {.json = json, .accepted = accepted});
}

}  // namespace

int main(int argc, char** argv) {
  cli::run_main([&] { return run(argc, argv); }, {});
}
