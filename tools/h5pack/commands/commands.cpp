#include "h5pack/commands/commands.hpp"

#include "cli/help.hpp"

namespace h5pack {

Program::Program()
    : app_("Packs folders of images into chunked HDF5 files and streams them for training.",
           "h5pack") {
  cli::set_help(app_, {"h5pack folder photos/ -o train.h5 --resize 64 --center-crop 64x64",
                       "h5pack stream train.h5 --epochs 2"});
  app_.set_help_all_flag("--help-all", "Print all options and exit");
  app_.set_version_flag("-v,--version", "",
                        "Print the versions of h5pack and its libraries, and exit");
  app_.add_flag("--json", global_.json, "Print results as JSON");
  app_.add_flag("--quiet,-q", global_.quiet, "Show no progress");
  app_.require_subcommand(1);
  // Inherited by the subcommands: options they do not know are looked up here, so that the global
  // ones may stand anywhere.
  app_.fallthrough();
  add_pack_commands(app_, global_, action_);
  add_csr_command(app_, global_, action_);
  add_info_command(app_, global_, action_);
  add_stream_command(app_, global_, action_);
  add_tune_command(app_, global_, action_);
  add_doctor_command(app_, global_, action_);
  add_preview_command(app_, global_, action_);
  add_verify_command(app_, global_, action_);
  add_export_command(app_, global_, action_);
  add_repack_command(app_, global_, action_);
  add_append_command(app_, global_, action_);
  add_link_command(app_, global_, action_);
  add_index_command(app_, global_, action_);
}

std::vector<std::pair<std::string, std::string>> exit_codes() {
  const auto text = [](cli::ExitCode code) { return std::to_string(static_cast<int>(code)); };
  return {{text(cli::ExitCode::ok), "done"},
          {text(cli::ExitCode::failed), "failed; verify: could not check"},
          {text(cli::ExitCode::usage), "wrong usage; nothing was done"},
          {text(cli::ExitCode::skipped), "finished, but images were skipped"},
          {text(cli::ExitCode::damaged), "verify: the file is damaged, or differs from its source"},
          {text(cli::ExitCode::hung_up) + ", " + text(cli::ExitCode::interrupted) + ", " +
               text(cli::ExitCode::terminated),
           "interrupted by SIGHUP, SIGINT or SIGTERM; a second signal, or five seconds, ends the "
           "program at once"}};
}

}  // namespace h5pack
