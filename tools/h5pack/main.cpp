/// Parses the command line, runs the chosen subcommand, and turns every failure into one line and
/// an exit code.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/error.hpp>

#include "command.hpp"
#include "commands.hpp"
#include "help.hpp"
#include "old_spellings.hpp"
#include "option_flags.hpp"
#include "output.hpp"
#include "versions.hpp"

namespace {

using h5pack::ExitCode;

ExitCode report(ExitCode exit_code, std::string_view code, std::string_view message, bool json) {
  h5pack::print_failure(code, message, json);
  return exit_code;
}

/// --json counts even if parsing ended before CLI11 came to it.
bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) return true;
  }
  return false;
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
  const std::string meant = h5pack::most_similar(word, known);
  return std::string("there is no ") + (is_option ? "option" : "command") + " '" + word + "'" +
         (meant.empty() ? "" : " (did you mean " + meant + "?)");
}

ExitCode run(int argc, char** argv) {
  h5pack::Program program;
  CLI::App& app = program.app();
  if (argc == 1) {
    std::fputs(app.help().c_str(), stderr);
    return ExitCode::usage;
  }
  const bool json = asks_for_json(argc, argv);
  try {
    h5pack::CommandLine line = h5pack::with_todays_spellings({argv + 1, argv + argc});
    // CLI11 takes them from the back.
    app.parse(std::vector(line.arguments.rbegin(), line.arguments.rend()));
    for (const std::string& warning : line.warnings) h5pack::print_warning(warning);
    return program.run();
  } catch (const CLI::CallForHelp&) {
    h5pack::print(app.help());
    return ExitCode::ok;
  } catch (const CLI::CallForAllHelp&) {
    h5pack::print(app.help("", CLI::AppFormatMode::All));
    return ExitCode::ok;
  } catch (const CLI::CallForVersion&) {
    h5pack::print(h5pack::versions_text());
    return ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    return report(ExitCode::usage, "usage",
                  usage_problem(app, error) + "; see '" + command_name(app) + " --help'", json);
  } catch (const chunkio::Error& error) {
    const bool usage = error.code() == chunkio::ErrorCode::invalid_argument;
    const auto accepted = [&](const std::string& flag) { return knows(app, flag); };
    return report(usage ? ExitCode::usage : ExitCode::failed, to_string(error.code()),
                  h5pack::with_flags(error, accepted), json);
  } catch (const std::bad_alloc&) {
    return report(ExitCode::failed, to_string(chunkio::ErrorCode::out_of_resources),
                  "out of memory; try smaller sizes or fewer threads", json);
  } catch (const std::exception& error) {
    return report(ExitCode::failed, "internal", error.what(), json);
  }
}

ExitCode run_or_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    // Only printing the help or setting up the parser can end here.
    h5pack::print_error(error.what());
    return ExitCode::failed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  h5pack::prepare_standard_streams();
  const ExitCode exit_code = run_or_report(argc, argv);
  // After an error of the disk or an object that it could not open, libhdf5's exit handler may
  // print
  // ("infinite loop closing library"), loop or crash. Everything of ours is finished; only what
  // stdio holds is not.
  std::fflush(nullptr);
  ::_exit(static_cast<int>(exit_code));
}
