/// h5pack stream: runs epochs through the loader without a trainer and says what it cost.
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "command.hpp"
#include "options.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "render_json.hpp"
#include "render_text.hpp"

namespace h5pack {
namespace {

using Clock = std::chrono::steady_clock;

struct StreamOptions {
  std::string file = {};
  chunkio::OpenOptions open = {};
  chunkio::LoaderOptions loader = {};
  std::int64_t epochs = 1;
  double consume_ms = 0;
  bool digest = false;
};

static_assert(std::endian::native == std::endian::little,
              "the order digest is defined over little-endian numbers");

/// XXH3-64 over sample ids in delivery order.
class OrderDigest {
 public:
  OrderDigest() noexcept { XXH3_64bits_reset(&state_); }
  void add(std::span<const std::int64_t> sample_ids) noexcept {
    XXH3_64bits_update(&state_, sample_ids.data(), sample_ids.size_bytes());
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_{};
};

/// Runs one epoch and takes its time.
EpochReport run_epoch(chunkio::Loader& loader, std::int64_t epoch, const StreamOptions& options,
                      bool quiet) {
  Progress progress("epoch " + std::to_string(epoch), "images", loader.samples_per_epoch(), quiet);
  const std::chrono::duration<double, std::milli> pretend_step(options.consume_ms);
  EpochReport report;
  report.epoch = epoch;
  OrderDigest order;
  const Clock::time_point start = Clock::now();
  for (const chunkio::Batch& batch : loader.epoch(epoch)) {
    order.add(batch.sample_ids());
    if (options.consume_ms > 0) std::this_thread::sleep_for(pretend_step);
    progress.add(batch.size());
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  report.stats = loader.epoch_stats(epoch);
  report.order_digest = order.value();
  return report;
}

/// What a sample was called in its source: `source_index` if the file has it, else the row itself.
/// So files packed in different orders from the same source have the same pixel digest.
class SourceIds {
 public:
  explicit SourceIds(const chunkio::Dataset& dataset) {
    const std::optional<chunkio::FieldInfo> field = dataset.find_field("source_index");
    if (!field || field->dtype != chunkio::DType::int64 || field->row_shape.rank() != 0) return;
    ids_.resize(static_cast<std::size_t>(dataset.size()));
    dataset.read_field(field->name, 0, dataset.size(), std::as_writable_bytes(std::span(ids_)));
  }
  [[nodiscard]] std::uint64_t of(std::int64_t row) const {
    return static_cast<std::uint64_t>(ids_.empty() ? row : ids_[static_cast<std::size_t>(row)]);
  }

 private:
  std::vector<std::int64_t> ids_;
};

/// Streams all epochs once more, with a loader of its own, and adds the pixel digests to the
/// reports. A pass of its own because the loader reads ahead while a digest is computed: inside the
/// timed pass the figures would flatter it.
void add_pixel_digests(const chunkio::Dataset& dataset, const StreamOptions& options, bool quiet,
                       std::vector<EpochReport>& reports) {
  const SourceIds source_ids(dataset);
  const auto sample_bytes = static_cast<std::size_t>(dataset.info().sample_bytes());
  chunkio::Loader loader(dataset, options.loader);
  for (EpochReport& report : reports) {
    Progress progress("digest of epoch " + std::to_string(report.epoch), "images",
                      loader.samples_per_epoch(), quiet);
    OrderDigest order;
    std::uint64_t sum = 0;
    for (const chunkio::Batch& batch : loader.epoch(report.epoch)) {
      const std::span<const std::int64_t> ids = batch.sample_ids();
      const std::byte* const pixels = batch.images().data();
      order.add(ids);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        sum += XXH3_64bits_withSeed(pixels + i * sample_bytes, sample_bytes, source_ids.of(ids[i]));
      }
      progress.add(batch.size());
    }
    if (order.value() != report.order_digest) {
      throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                           escape(options.file) + ": two passes over epoch " +
                               std::to_string(report.epoch) +
                               " differ in order; is something writing to the file?");
    }
    report.pixel_digest = sum;
  }
}

ExitCode stream(StreamOptions options, const GlobalOptions& global) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(options.file, options.open);
  options.loader.num_epochs = options.epochs;
  StreamSetup setup;
  std::vector<EpochReport> reports;
  EpochReport total;
  const auto show = [&](const EpochReport& report) {
    print(global.json ? epoch_json(setup, report) : epoch_text(report));
  };
  {
    chunkio::Loader loader(dataset, options.loader);
    setup = {.dataset = dataset.info(),
             .source = loader.source(),
             .source_reason = loader.source_reason(),
             .order = options.loader.order,
             .batch_size = options.loader.batch_size,
             .num_threads = loader.num_threads(),
             .num_groups = loader.row_groups().num_groups(),
             .group_samples = loader.row_groups().group_samples(),
             .window_groups = loader.window_groups(),
             .memory_bytes = loader.memory_bytes(),
             .seed = options.loader.seed};
    if (!global.json) print(stream_head_text(setup, use_colour(stdout)));
    for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      reports.push_back(run_epoch(loader, epoch, options, global.quiet));
      total.seconds += reports.back().seconds;
      if (!options.digest) {
        show(reports.back());
        reports.clear();
      }
    }
    total.stats = loader.stats();
  }
  if (options.digest) {
    add_pixel_digests(dataset, options, global.quiet, reports);
    for (const EpochReport& report : reports) show(report);
  }
  if (!global.json) {
    if (options.epochs > 1) print(all_epochs_text(total));
    if (options.digest) {
      print("Digests were taken in a second pass; the figures above are of the first.\n");
    }
  }
  return ExitCode::ok;
}

}  // namespace

void add_stream_command(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* const command = app.add_subcommand(
      "stream", "Stream epochs without a trainer and show what the file and machine can do");
  const auto options = std::make_shared<StreamOptions>();
  chunkio::LoaderOptions& loader = options->loader;
  command->add_option("FILE", options->file, "An HDF5 file")->required()->type_name("");
  add_integer(*command, "--batch", loader.batch_size, 1, "Samples in a batch");
  add_integer(*command, "--epochs", options->epochs, 1, "How often to go through the file");
  add_seed(*command, "--seed", loader.seed, "Seed of the order");
  add_choice<chunkio::OrderMode>(*command, "--order", loader.order,
                                 {{"chunk_shuffled", chunkio::OrderMode::chunk_shuffled},
                                  {"sequential", chunkio::OrderMode::sequential},
                                  {"random", chunkio::OrderMode::random}},
                                 "Order of the samples");
  add_choice<chunkio::SourceKind>(*command, "--source", loader.source,
                                  {{"auto", chunkio::SourceKind::automatic},
                                   {"mapped", chunkio::SourceKind::mapped},
                                   {"scatter", chunkio::SourceKind::scatter},
                                   {"hdf5", chunkio::SourceKind::hdf5}},
                                  "How bytes come from the file");
  add_byte_size(*command, "--memory-budget", loader.memory_budget, "Memory the loader may use");
  add_byte_size(*command, "--window-bytes", loader.window_bytes,
                "Bytes mixed together: more mixes better and needs more memory");
  add_integer(*command, "--threads", loader.num_threads, 0, "Reading threads; 0 chooses");
  command->add_option("--fields", loader.fields, "Further fields to deliver, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  command->add_flag("--drop-last", loader.drop_last, "Leave out the last, smaller batch");
  add_milliseconds(*command, "--consume-ms", options->consume_ms,
                   "Pretend to train: wait so long after each batch");
  command->add_flag("--digest", options->digest,
                    "Stream once more and print a hash of all pictures that ignores their order");
  add_open_options(*command, options->open);
  command->callback([&global, &action, options] {
    if (options->loader.num_threads > kMaxThreads) {
      throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                           "--threads must be at most " + std::to_string(kMaxThreads));
    }
    action = [&global, options] { return stream(*options, global); };
  });
}

}  // namespace h5pack
