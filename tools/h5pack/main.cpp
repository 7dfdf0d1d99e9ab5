/// Parses the command line, runs the chosen subcommand, and turns every failure into one line and
/// an exit code.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/error.hpp>

#include "command.hpp"
#include "option_flags.hpp"
#include "output.hpp"
#include "render_json.hpp"
#include "text_layout.hpp"

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

/// Help that fits a terminal of 80 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return h5pack::wrap(CLI::Formatter::make_option_desc(option), kColumns - get_column_width());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return h5pack::labelled(
        "  " + command->get_name(),
        h5pack::wrap(command->get_description(), kColumns - h5pack::kLabelColumns), false);
  }

 private:
  static constexpr std::size_t kColumns = 80;
};

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

/// CLI11's text, except that an unknown command or option is named.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  if (!app.get_subcommands().empty()) return error.what();
  if (unknown.empty()) return "name a command, such as folder or stream";
  const char* const kind = unknown.front().starts_with('-') ? "option" : "command";
  return std::string("there is no ") + kind + " '" + unknown.front() + "'";
}

ExitCode run(int argc, char** argv) {
  CLI::App app("Packs folders of pictures into chunked HDF5 files and streams them for training.",
               "h5pack");
  h5pack::GlobalOptions global;
  h5pack::Action action;
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "h5pack " H5PACK_VERSION "\n", "Print the version and exit");
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

  const bool json = asks_for_json(argc, argv);
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::CallForHelp&) {
    h5pack::print(app.help());
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
