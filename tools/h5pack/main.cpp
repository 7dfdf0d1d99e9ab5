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
#include "help.hpp"
#include "option_flags.hpp"
#include "output.hpp"
#include "render_json.hpp"

namespace {

using h5pack::ExitCode;

/// The error as its reader wants it: a line on stderr and, with --json, an object on stdout.
ExitCode report(ExitCode exit_code, std::string_view code, std::string_view message, bool json) {
  h5pack::print_error(message);
  if (json) {
    try {
      h5pack::print(h5pack::error_json(code, message));
    } catch (const chunkio::Error&) {
      // stdout may be the very thing that failed; the line on stderr and the exit code remain.
    }
  }
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
  const std::string meant = h5pack::most_similar(word, known_names(command, is_option));
  return std::string("there is no ") + (is_option ? "option" : "command") + " '" + word + "'" +
         (meant.empty() ? "" : " (did you mean " + meant + "?)");
}

ExitCode run(int argc, char** argv) {
  CLI::App app("Packs folders of pictures into chunked HDF5 files and streams them for training.",
               "h5pack");
  h5pack::GlobalOptions global;
  h5pack::Action action;
  h5pack::set_help(app, {"h5pack folder photos/ -o train.h5 --resize 64 --center-crop 64x64",
                         "h5pack stream train.h5 --epochs 2"});
  app.set_help_all_flag("--help-all", "Print all options and exit");
  app.set_version_flag("-v,--version", "h5pack " H5PACK_VERSION "\n", "Print the version and exit");
  app.add_flag("--json", global.json, "Print results as JSON");
  app.add_flag("--quiet,-q", global.quiet, "Show no progress");
  app.require_subcommand(1);
  // Inherited by the subcommands: options they do not know are looked up here, so that the global
  // ones may stand anywhere.
  app.fallthrough();
  h5pack::add_pack_commands(app, global, action);
  h5pack::add_info_command(app, global, action);
  h5pack::add_stream_command(app, global, action);
  h5pack::add_tune_command(app, global, action);
  h5pack::add_doctor_command(app, global, action);
  h5pack::add_preview_command(app, global, action);
  h5pack::add_verify_command(app, global, action);
  h5pack::add_export_command(app, global, action);
  h5pack::add_repack_command(app, global, action);
  h5pack::add_append_command(app, global, action);
  h5pack::add_link_command(app, global, action);

  if (argc == 1) {
    std::fputs(app.help().c_str(), stderr);
    return ExitCode::usage;
  }
  const bool json = asks_for_json(argc, argv);
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::CallForHelp&) {
    h5pack::print(app.help());
    return ExitCode::ok;
  } catch (const CLI::CallForAllHelp&) {
    h5pack::print(app.help("", CLI::AppFormatMode::All));
    return ExitCode::ok;
  } catch (const CLI::CallForVersion& version) {
    h5pack::print(version.what());
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
