#include "h5pack/commands/stream_options.hpp"

#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>

#include "cli/options.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

void add_delivered(CLI::App& app, StreamOptions& options) {
  const cli::Heading heading(app, "What is delivered");
  chunkio::LoaderOptions& loader = options.loader;
  auto* const batch = cli::add_integer(app, "--batch", loader.batch_size, 1, "Samples in a batch");
  cli::add_integer(app, "--epochs", options.epochs, 1, "Number of epochs");
  cli::add_integer(app, "--steps", options.steps, 1, "Stop after N batches of the whole run")
      ->default_str("");
  cli::add_seed(app, "--seed", loader.seed, "Seed of the order of samples");
  add_order(app, loader);
  auto* const window = cli::add_byte_size(
      app, "--window-bytes", loader.order.window_bytes,
      "Size of the shuffle window: a larger one mixes better and takes more memory");
  app.add_flag("--drop-last", loader.order.drop_last, "Leave out the last, smaller batch");
  add_fields(app, loader);
  cli::add_rows(app, loader.rows);
  cli::add_names(app, "--labels", options.labels,
                 "Only samples of these classes: names of the file, or numbers", "LIST");
  add_verify(app, loader);
  cli::add_choice<chunkio::OnError>(
      app, "--on-error", loader.io.on_error,
      {{"fail", chunkio::OnError::raise}, {"skip", chunkio::OnError::skip}},
      "On a damaged row: stop, or skip and count it (exit code 3)");
  app.add_option(
         "--state-out", options.state_out,
         "Write the loader's state to FILE, or to standard output (-), before any second pass")
      ->type_name("FILE");
  app.add_option(
         "--state-in", options.state_in,
         "Continue from a saved state until --epochs epochs are complete, with its batch, window "
         "and lanes")
      ->type_name("FILE")
      ->excludes(batch)
      ->excludes(window);
}

void add_ranks(CLI::App& app, StreamOptions& options) {
  const cli::Heading heading(app, "Ranks");
  chunkio::LoaderOptions& loader = options.loader;
  auto* const rank = cli::add_integer(app, "--rank", loader.ranks.rank, 0, "Rank of this reader");
  auto* const world_size =
      cli::add_integer(app, "--world-size", loader.ranks.world_size, 1, "Number of readers");
  app.add_flag("--ranks-from-env", options.ranks_from_env,
               "Take rank and world size from torchrun, Open MPI, PMI or Slurm")
      ->excludes(rank)
      ->excludes(world_size);
  cli::add_integer(
      app, "--lanes", loader.order.lanes, 0,
      "Parts of the order: every world size that divides it sees the same global batches; 0: one "
      "for each reader")
      ->excludes("--state-in");
  cli::add_choice<chunkio::Uneven>(app, "--uneven", loader.order.uneven,
                                   {{"pad", chunkio::Uneven::pad},
                                    {"drop", chunkio::Uneven::drop},
                                    {"exact", chunkio::Uneven::exact}},
                                   "When samples do not divide evenly among readers");
}

void add_report(CLI::App& app, StreamOptions& options) {
  const cli::Heading heading(app, "Report");
  cli::add_milliseconds(app, "--step-ms", options.step_ms,
                        "Wait this long after each batch, as a training step would");
  app.add_flag("--digest", options.digest,
               "Stream once more and print a hash of all images that ignores their order");
  app.add_flag("--shuffle-quality", options.shuffle_quality,
               "Stream once more and compare the mix of batches with a global shuffle");
}

}  // namespace

CLI::Option* add_order(CLI::App& app, chunkio::LoaderOptions& loader) {
  return cli::add_choice<chunkio::OrderMode>(
      app, "--order", loader.order.mode,
      {{"chunk-shuffled", chunkio::OrderMode::chunk_shuffled},
       {"sequential", chunkio::OrderMode::sequential},
       {"random", chunkio::OrderMode::random}},
      "Order of the samples");
}

CLI::Option* add_fields(CLI::App& app, chunkio::LoaderOptions& loader) {
  return cli::add_names(app, "--fields", loader.fields,
                        "Further fields to deliver, separated by commas", "NAMES");
}

CLI::Option* add_verify(CLI::App& app, chunkio::LoaderOptions& loader) {
  return cli::add_choice<chunkio::Verify>(app, "--verify", loader.io.verify,
                                          {{"auto", chunkio::Verify::automatic},
                                           {"off", chunkio::Verify::off},
                                           {"first-epoch", chunkio::Verify::first_epoch},
                                           {"always", chunkio::Verify::always}},
                                          "When to compare stored digests; auto: always if "
                                          "whole chunks come from a server, else off");
}

void add_reading_options(CLI::App& app, chunkio::LoaderOptions& loader, cli::DiskOptions& disk) {
  const cli::Heading heading(app, "How it is read (never changes what is delivered)");
  cli::add_choice<chunkio::SourceKind>(app, "--source", loader.io.source,
                                       {{"auto", chunkio::SourceKind::automatic},
                                        {"mapped", chunkio::SourceKind::mapped},
                                        {"scatter", chunkio::SourceKind::scatter},
                                        {"direct", chunkio::SourceKind::direct},
                                        {"hdf5", chunkio::SourceKind::hdf5}},
                                       "How to read the file");
  app.add_flag("--direct-io", loader.io.direct_io,
               "Bypass the page cache (sources scatter and direct), for data far larger than "
               "memory");
  cli::add_choice<chunkio::Resident>(
      app, "--resident", loader.memory.resident,
      {{"none", chunkio::Resident::none}, {"host", chunkio::Resident::host}},
      "Where to keep images after the first epoch");
  cli::add_byte_size(app, "--memory-budget", loader.memory.budget,
                     "Memory that the loader may use");
  cli::add_integer(app, "-j,--threads", loader.io.num_threads, 0,
                   "Reading threads; 0: h5pack chooses");
  cli::add_integer(app, "--prefetch", loader.memory.prefetch_depth, 1,
                   "Batches to keep ready, at least");
  cli::add_disk_limit(app, disk);
}

void add_stream_options(CLI::App& app, StreamOptions& options) {
  cli::add_file_or_shards(app, options.file);
  cli::add_open_options(app, options.open, "The file");
  add_delivered(app, options);
  add_reading_options(app, options.loader, options.disk);
  add_ranks(app, options);
  add_report(app, options);
}

void finish_stream_options(StreamOptions& options) {
  chunkio::LoaderOptions& loader = options.loader;
  cli::check_threads(loader.io.num_threads);
  if (options.ranks_from_env) {
    const chunkio::Ranks ranks = chunkio::Ranks::from_environment();
    loader.ranks.rank = ranks.rank;
    loader.ranks.world_size = ranks.world_size;
  }
  if (loader.ranks.rank >= loader.ranks.world_size) {
    throw Error(ErrorCode::invalid_argument, "--rank must be below --world-size, which is " +
                                                 std::to_string(loader.ranks.world_size) +
                                                 ", not " + std::to_string(loader.ranks.rank));
  }
  loader.io.num_epochs = options.epochs;
  loader.io.disk_limit = options.disk.limit();
}

}  // namespace h5pack
