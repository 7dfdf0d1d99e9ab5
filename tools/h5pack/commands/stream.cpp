/// h5pack stream: runs epochs through the loader without a trainer and says what it cost.
#include <algorithm>
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
#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>

#include "cli/command.hpp"
#include "cli/escape.hpp"
#include "cli/help.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/commands/state_file.hpp"
#include "h5pack/commands/stream_options.hpp"
#include "h5pack/dataset/class_labels.hpp"
#include "h5pack/dataset/shuffle_quality.hpp"
#include "h5pack/dataset/structure_check.hpp"
#include "h5pack/report/report.hpp"
#include "h5pack/sources/source_provenance.hpp"

namespace h5pack {
namespace {

using Clock = std::chrono::steady_clock;

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

/// A run through the file: one for the figures and, if asked for, one more that looks at what is
/// delivered. Both deliver the same batches.
class StreamRun {
 public:
  /// \param state  to continue from; empty: from the start.
  StreamRun(const chunkio::Dataset& dataset, const StreamOptions& options, bool quiet,
            const std::string& state)
      : loader_(make_loader(dataset, options, state)),
        options_(options),
        // Several bars on one terminal would be none.
        quiet_(quiet || options.loader.ranks.rank != 0),
        steps_left_(options.steps),
        first_epoch_(loader_.position().epoch) {
    if (first_epoch_ >= options.epochs) {
      throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                           "--state-in " + cli::escape(options.state_in) + " is in epoch " +
                               std::to_string(first_epoch_) + ", and --epochs " +
                               std::to_string(options.epochs) + " ends before it; use --epochs " +
                               std::to_string(first_epoch_ + 1) + " or more");
    }
  }

  /// Calls `visit` with the number of each epoch until the end of the run.
  template <class Visit>
  void for_each_epoch(const Visit& visit) {
    for (std::int64_t epoch = first_epoch_; epoch < options_.epochs && steps_left_ > 0; ++epoch) {
      visit(epoch);
    }
  }

  /// Calls `take` for the batches of an epoch, as far as the run goes.
  template <class Take>
  void for_each_batch(std::int64_t epoch, const std::string& what, const Take& take) {
    cli::Progress progress(what + " " + std::to_string(epoch), "images",
                           std::max<std::int64_t>(loader_.samples_per_epoch(), 1), quiet_);
    loader_.start_epoch(epoch);
    while (steps_left_ > 0) {
      const std::optional<chunkio::Batch> batch = loader_.next();
      if (!batch) return;
      --steps_left_;
      take(*batch);
      progress.add(batch->size());
    }
  }

  [[nodiscard]] chunkio::Loader& loader() noexcept { return loader_; }
  [[nodiscard]] const chunkio::Loader& loader() const noexcept { return loader_; }

 private:
  static chunkio::Loader make_loader(const chunkio::Dataset& dataset, const StreamOptions& options,
                                     const std::string& state) {
    if (state.empty()) return {dataset, options.loader};
    try {
      return chunkio::Loader::resume(dataset, options.loader, state);
    } catch (const chunkio::Error& error) {
      if (error.code() != chunkio::ErrorCode::invalid_argument) throw;
      throw error.with_message("--state-in " + options.state_in + ": " + error.what());
    }
  }

  chunkio::Loader loader_;
  const StreamOptions& options_;
  bool quiet_;
  std::int64_t steps_left_;
  std::int64_t first_epoch_;
};

/// Runs one epoch and takes its time.
EpochReport run_epoch(StreamRun& run, std::int64_t epoch, const StreamOptions& options) {
  const std::chrono::duration<double, std::milli> step(options.step_ms);
  EpochReport report;
  report.epoch = epoch;
  OrderDigest order;
  const Clock::time_point start = Clock::now();
  run.for_each_batch(epoch, "epoch", [&](const chunkio::Batch& batch) {
    order.add(batch.sample_ids());
    if (options.step_ms > 0) std::this_thread::sleep_for(step);
  });
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  report.stats = run.loader().epoch_stats(epoch);
  report.skipped = run.loader().skipped();
  report.order_digest = order.value();
  return report;
}

/// Adds up digests of the samples of one array of the batches, with what each was called in its
/// source: `source_index` if the file has it, else the row itself. So files packed in different
/// orders from the same source have the same pixel digest.
class SampleDigests {
 public:
  /// \param source_ids  of all rows, or empty. Must outlive this.
  explicit SampleDigests(const std::vector<std::int64_t>& source_ids) : source_ids_(&source_ids) {}
  void add(std::span<const std::int64_t> rows, const chunkio::Tensor& view) {
    if (rows.empty()) return;
    const std::size_t row_bytes = view.size_bytes() / rows.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      sum_ += XXH3_64bits_withSeed(view.data() + i * row_bytes, row_bytes, id_of(rows[i]));
    }
  }
  /// Of a row the columns, and then the values.
  void add(std::span<const std::int64_t> rows, const chunkio::SparseTensor& view) {
    const auto offset = [&](std::size_t i) {
      return view.indptr.dtype() == chunkio::DType::int32
                 ? static_cast<std::size_t>(view.indptr.values<std::int32_t>()[i])
                 : static_cast<std::size_t>(view.indptr.values<std::int64_t>()[i]);
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::uint64_t digest = id_of(rows[i]);
      for (const chunkio::Tensor* part : {&view.indices, &view.values}) {
        const std::size_t bytes = chunkio::size_of(part->dtype());
        digest = XXH3_64bits_withSeed(part->data() + offset(i) * bytes,
                                      (offset(i + 1) - offset(i)) * bytes, digest);
      }
      sum_ += digest;
    }
  }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }

 private:
  [[nodiscard]] std::uint64_t id_of(std::int64_t row) const {
    return static_cast<std::uint64_t>(
        source_ids_->empty() ? row : (*source_ids_)[static_cast<std::size_t>(row)]);
  }

  const std::vector<std::int64_t>* source_ids_;
  std::uint64_t sum_ = 0;
};

/// Goes through all epochs once more and adds digests and shuffle quality to the reports. A pass of
/// its own because the loader reads ahead while its batches are looked at: inside the timed pass
/// the figures would flatter it.
void inspect(const chunkio::Dataset& dataset, const StreamOptions& options, bool quiet,
             const std::string& state, std::vector<EpochReport>& reports) {
  const std::vector<std::int64_t> source_ids = source_rows(dataset, {0, dataset.size()});
  const std::optional<chunkio::FieldInfo>& labels = dataset.info().labels;
  StreamRun run(dataset, options, quiet, state);
  std::optional<chunkio::LabelSummary> label_summary;
  if (options.shuffle_quality) {
    label_summary = summarize_labels(dataset, run.loader().row_groups());
  }
  for (EpochReport& report : reports) {
    OrderDigest order;
    SampleDigests pixels(source_ids);
    SampleDigests label_digests(source_ids);
    std::vector<SampleDigests> fields(options.loader.fields.size(), SampleDigests(source_ids));
    ShuffleMeter meter(label_summary, run.loader().row_groups());
    run.for_each_batch(report.epoch, "second pass, epoch", [&](const chunkio::Batch& batch) {
      const std::span<const std::int64_t> rows = batch.sample_ids();
      order.add(rows);
      if (options.digest) {
        if (batch.is_sparse()) {
          pixels.add(rows, batch.sparse());
        } else {
          pixels.add(rows, batch.leading());
        }
        if (labels) label_digests.add(rows, batch.labels());
        for (std::size_t i = 0; i < fields.size(); ++i) {
          fields[i].add(rows, batch[options.loader.fields[i]]);
        }
      }
      if (options.shuffle_quality) {
        meter.add(rows, label_summary ? batch.labels().values<std::int64_t>()
                                      : std::span<const std::int64_t>());
      }
    });
    if (order.value() != report.order_digest) {
      throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                           cli::escape(options.file) + ": two passes over epoch " +
                               std::to_string(report.epoch) +
                               " differ in what they delivered; is something writing to the file?");
    }
    if (options.digest) {
      report.pixel_digest = pixels.sum();
      if (labels) report.field_digests.push_back({labels->name, label_digests.sum()});
      for (std::size_t i = 0; i < fields.size(); ++i) {
        report.field_digests.push_back({options.loader.fields[i], fields[i].sum()});
      }
    }
    if (options.shuffle_quality) report.shuffle = meter.quality();
  }
}

StreamSetup describe(const chunkio::Loader& loader, std::int64_t epochs) {
  const chunkio::RowGroups& groups = loader.row_groups();
  return {.dataset = loader.dataset().info(),
          .options = loader.options(),
          .source = loader.source(),
          .source_reason = loader.source_reason(),
          .num_samples = groups.num_samples(),
          .num_groups = groups.num_groups(),
          .group_samples = groups.group_samples(),
          .window_groups = loader.window_groups(),
          .memory_bytes = loader.memory_bytes(),
          .num_epochs = epochs - loader.position().epoch};
}

cli::ExitCode stream(StreamOptions options, const cli::GlobalOptions& global) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(options.file, options.open);
  warn_of_damage(dataset.info());
  options.loader.only_labels = labels_of(dataset.info(), options.labels);
  if (!options.state_out.empty()) check_state_output(options.state_out);
  const std::string state_in =
      options.state_in.empty() ? std::string() : read_state(options.state_in);
  const bool second_pass = options.digest || options.shuffle_quality;

  StreamSetup setup;
  std::string reason_at_first;
  std::vector<EpochReport> reports;
  EpochReport total;
  total.epochs = 0;
  chunkio::LoaderStats last;  // of one epoch: not with what was read ahead for the next
  const bool colour = cli::use_colour(stdout);
  const auto show = [&](const EpochReport& report) {
    cli::print(global.json ? epoch_json(setup, report) : epoch_text(setup, report, colour));
  };
  {
    StreamRun run(dataset, options, global.quiet, state_in);
    setup = describe(run.loader(), options.epochs);
    reason_at_first = setup.source_reason;
    if (!global.json) cli::print(stream_head_text(setup, colour));
    run.for_each_epoch([&](std::int64_t epoch) {
      reports.push_back(run_epoch(run, epoch, options));
      // What was found out about it meanwhile.
      setup.source = run.loader().source();
      setup.source_reason = run.loader().source_reason();
      total.seconds += reports.back().seconds;
      last = reports.back().stats;
      ++total.epochs;
      if (!second_pass) {
        show(reports.back());
        reports.clear();
      }
    });
    total.stats = total.epochs == 1 ? last : run.loader().stats();
    total.skipped = run.loader().skipped();
    // Before the second pass: whatever becomes of that, the epochs of this one were delivered.
    if (!options.state_out.empty()) write_state(options.state_out, run.loader().state());
  }
  if (second_pass) {
    inspect(dataset, options, global.quiet, state_in, reports);
    for (const EpochReport& report : reports) show(report);
  }
  if (!global.json) {
    setup.num_epochs = total.epochs;
    cli::print(stream_end_text(setup, total, reason_at_first, colour) +
               (second_pass
                    ? "Digests and shuffle quality are of a second pass, the figures of the "
                      "first.\n"
                    : ""));
  }
  return total.stats.skipped_images > 0 ? cli::ExitCode::skipped : cli::ExitCode::ok;
}

}  // namespace

void add_stream_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command = app.add_subcommand(
      "stream", "Stream epochs without a trainer, and measure how fast they come");
  const auto options = std::make_shared<StreamOptions>();
  add_stream_options(*command, *options);
  cli::set_help(
      *command,
      {"h5pack stream train.h5 --epochs 2",
       "h5pack stream train.h5 --step-ms 12 --simulate-disk hdd"},
      {"--images", "--label-field", "--batch", "--epochs", "--seed", "--order", "--rows",
       "--labels", "--source", "--threads", "--simulate-disk", "--step-ms", "--shuffle-quality"});
  command->callback([&global, &action, options] {
    finish_stream_options(*options);
    action = [&global, options] { return stream(*options, global); };
  });
}

}  // namespace h5pack
