/// h5pack doctor: what training from a file would wait for, and what would help.
#include <memory>

#include <chunkio/error.hpp>

#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/interruptible.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/commands/stream_options.hpp"
#include "h5pack/report/report.hpp"
#include "h5pack/tune/doctor_run.hpp"

namespace h5pack {
namespace {

constexpr std::int64_t kWindowBytes = std::int64_t{32} << 20;

void add_run_options(CLI::App& app, DoctorOptions& options) {
  cli::add_file_or_shards(app, options.file);
  cli::add_milliseconds(app, "--step-ms", options.step_ms, "Time of your training step for a batch")
      ->required()
      ->default_str("");
  cli::add_integer(app, "--batch", options.loader.batch_size, 1, "Samples in a batch");
  cli::add_byte_size(
      app, "--window-bytes", options.loader.order.window_bytes,
      "Size of the shuffle window; smaller than a loader's 256 MiB, so that a short run has many "
      "windows");
  add_order(app, options.loader);
  add_fields(app, options.loader);
  add_verify(app, options.loader);
  cli::add_seconds(app, "--seconds", options.seconds, "Approximate length of each run");
  cli::add_integer(app, "--device", options.device, 0, "The CUDA device, if there is one");
  app.add_flag("--no-device", options.no_device, "Ignore GPUs");
}

void finish(DoctorOptions& options) {
  cli::check_threads(options.loader.io.num_threads);
  options.loader.io.disk_limit = options.disk.limit();
  if (options.step_ms > 0) return;
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       "--step-ms must be above 0: it is what your training step takes for a "
                       "batch; to see what the file can do without one, use h5pack stream");
}

}  // namespace

void add_doctor_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command = app.add_subcommand(
      "doctor", "Measure what training from a file would wait for, and suggest what helps");
  const auto options = std::make_shared<DoctorOptions>();
  options->loader.order.window_bytes = kWindowBytes;
  add_run_options(*command, *options);
  add_reading_options(*command, options->loader, options->disk);
  cli::add_open_options(*command, options->open);
  cli::set_help(*command,
                {"h5pack doctor train.h5 --step-ms 12 --batch 256",
                 "h5pack doctor train.h5 --step-ms 12 --simulate-disk sata-ssd"},
                {"--step-ms", "--batch", "--order", "--verify", "--images", "--label-field",
                 "--source", "--direct-io", "--threads", "--simulate-disk", "--no-device"});
  command->callback([&global, &action, options] {
    finish(*options);
    action = [&global, options] {
      DoctorReport report;
      cli::run_until_signal(global, "the doctor",
                            [&] { report = run_doctor(*options, global.quiet); });
      cli::print(global.json ? doctor_json(report) : doctor_text(report, cli::use_colour(stdout)));
      return cli::ExitCode::ok;
    };
  });
}

}  // namespace h5pack
