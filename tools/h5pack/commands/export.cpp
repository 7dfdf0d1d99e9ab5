/// h5pack export: a packed file back to image files.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>

#include "cli/atomic_folder.hpp"
#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/interruptible.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/dataset/copy_loader.hpp"
#include "h5pack/dataset/export_names.hpp"
#include "h5pack/dataset/sample_table.hpp"
#include "h5pack/dataset/structure_check.hpp"
#include "h5pack/image/decode.hpp"
#include "h5pack/image/png_encoder.hpp"
#include "h5pack/report/report.hpp"
#include "h5pack/sources/csv_source.hpp"
#include "h5pack/sources/stored_rows.hpp"
#include "h5pack/sparse/matrix_export.hpp"

namespace h5pack {
namespace {

struct ExportCommand {
  std::string file = {};
  std::string output = {};
  chunkio::OpenOptions open = {};
  std::int64_t threads = 0;
  std::int64_t memory_budget = std::int64_t{1} << 30;
  bool force = false;
  std::optional<MatrixFormat> format = {};  ///< Of a sparse matrix.
};

/// Encodes and writes all images, as many at a time as there are threads.
void write_images(const chunkio::Dataset& dataset, const ExportNames& names,
                  const cli::AtomicFolder& folder, const ExportCommand& command,
                  cli::Progress& progress) {
  constexpr std::int64_t kBatchBytes = std::int64_t{16} << 20;
  const chunkio::DatasetInfo& info = dataset.info();
  const auto sample_bytes = static_cast<std::size_t>(info.sample_bytes());
  const int threads =
      command.threads > 0 ? static_cast<int>(command.threads) : tbb::info::default_concurrency();
  tbb::enumerable_thread_specific<PngEncoder> encoders([&] {
    return PngEncoder({.height = info.height, .width = info.width}, info.channels, info.layout);
  });
  static_cast<void>(
      encoders.local());  // what cannot be a PNG file is known before anything is read

  chunkio::Loader loader = copy_loader(
      dataset,
      {.batch_rows = std::min(std::max<std::int64_t>(kBatchBytes / info.sample_bytes(), threads),
                              info.num_samples),
       .memory_budget = command.memory_budget});
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    const std::span<const std::int64_t> rows = batch.sample_ids();
    const std::byte* const pixels = batch.images().data();
    arena.execute([&] {
      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, rows.size()), [&](const auto& range) {
        PngEncoder& encoder = encoders.local();
        for (std::size_t i = range.begin(); i != range.end(); ++i) {
          cli::StopSignal::check();
          folder.write(names.path(rows[i]),
                       encoder.encode({pixels + i * sample_bytes, sample_bytes}));
          progress.add(1);
        }
      });
    });
  }
}

const char* extension_of(std::span<const std::byte> encoded) {
  const std::string_view bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  if (bytes.starts_with("\x89PNG")) return ".png";
  return bytes.starts_with("RIFF") ? ".webp" : ".jpg";
}

/// Writes encoded images as their files were. \throws Error digest_mismatch: they no longer are.
void write_encoded(const chunkio::Dataset& dataset, ExportNames& names,
                   const cli::AtomicFolder& folder, cli::Progress& progress) {
  for (std::int64_t row = 0; row < dataset.size(); ++row) {
    cli::StopSignal::check();
    const chunkio::EncodedImage image = dataset.read_encoded(row);
    if (image.digest && *image.digest != XXH3_64bits(image.bytes.data(), image.bytes.size())) {
      throw chunkio::Error(chunkio::ErrorCode::digest_mismatch,
                           "row " + std::to_string(row) + " of " + cli::quote(dataset.info().path) +
                               " does not match its digest; copy or pack the file again");
    }
    names.set_extension(row, extension_of(image.bytes));
    folder.write(names.path(row),
                 {reinterpret_cast<const unsigned char*>(image.bytes.data()), image.bytes.size()});
    progress.add(1);
  }
}

void write_table(const SampleTable& table, const ExportNames& names,
                 const cli::AtomicFolder& folder) {
  std::string text = table.header();
  for (const std::int64_t row : names.rows_by_number()) table.append(text, row, names.path(row));
  folder.write(kSampleTable, {reinterpret_cast<const unsigned char*>(text.data()), text.size()});
}

/// Nothing but what an export made is ever removed. What is no folder AtomicFolder refuses.
/// \throws chunkio::Error output_exists, naming what else is in the folder.
void check_is_export(const std::string& folder) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(fs::symlink_status(folder))) return;
  const fs::path table = fs::path(folder) / kSampleTable;
  std::set<std::string> files{kSampleTable, cli::AtomicFolder::kMark};
  if (fs::is_regular_file(table)) {
    CsvOptions csv;
    csv.keep_missing = true;
    const Listing exported = list_csv(table.string(), csv);
    for (const std::string& file : exported.splits.front().images->files().paths) {
      files.insert(fs::path(file).lexically_relative(folder).string());
    }
  }
  for (const MatrixFormat format : {MatrixFormat::npz, MatrixFormat::mtx}) {
    const std::vector<std::string> matrix = exported_files(format);
    const bool all = std::all_of(matrix.begin(), matrix.end(), [&](const std::string& file) {
      return fs::is_regular_file(fs::path(folder) / file);
    });
    if (all) files.insert(matrix.begin(), matrix.end());
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    const bool folder_of_files = entry.is_directory() && !entry.is_symlink();
    if (folder_of_files || files.contains(name)) continue;
    throw chunkio::Error(chunkio::ErrorCode::output_exists,
                         cli::quote(folder) + " holds " + cli::quote(name) +
                             ", which no export wrote, so --force does not replace it; remove it, "
                             "or name another folder with -o");
  }
}

/// A sparse matrix and the tables of its rows and columns.
ExportReport export_sparse(const chunkio::Dataset& dataset, const ExportCommand& command,
                           bool quiet) {
  const auto start = std::chrono::steady_clock::now();
  const chunkio::SparseInfo& sparse = *dataset.info().sparse;
  if (command.force) check_is_export(command.output);
  {
    const cli::StopSignalToken stopping;
    check_digests(dataset, stopping.token(), quiet);
  }
  cli::AtomicFolder folder(command.output, command.force);
  const MatrixFormat format = command.format.value_or(MatrixFormat::npz);
  ExportReport report{.output = command.output, .matrix = exported_files(format).front()};
  {
    // Each entry is read twice, or counts so.
    cli::Progress progress("exporting " + command.file, "entries", 2 * sparse.num_entries, quiet);
    report.left_out = export_matrix(dataset, format, folder, progress);
  }
  cli::StopSignal::check();
  folder.publish();
  report.rows = dataset.size();
  report.columns = sparse.columns;
  report.entries = sparse.num_entries;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

ExportReport export_file(const ExportCommand& command, bool quiet) {
  const auto start = std::chrono::steady_clock::now();
  const chunkio::Dataset dataset = chunkio::Dataset::open(command.file, command.open);
  refuse_damaged(dataset.info());
  if (dataset.info().sparse) return export_sparse(dataset, command, quiet);
  if (command.format) {
    throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                         cli::quote(command.file) + " holds no sparse matrix; --format is for one");
  }
  const bool encoded = dataset.info().encoded && !command.open.decode;
  if (!encoded) require_images(dataset.info());
  if (command.force) check_is_export(command.output);
  cli::AtomicFolder folder(command.output, command.force);
  ExportNames names(dataset);
  const SampleTable table(dataset);
  for (const std::string& name : names.folders()) folder.make_folder(name);
  {
    cli::Progress progress("exporting " + command.file, "images", dataset.size(), quiet);
    if (encoded) {
      write_encoded(dataset, names, folder, progress);
    } else {
      write_images(dataset, names, folder, command, progress);
    }
  }
  write_table(table, names, folder);
  cli::StopSignal::check();
  folder.publish();
  return {
      .output = command.output,
      .images = dataset.size(),
      .folders = names.folders(),
      .left_out = table.left_out(),
      .notes = names.notes(),
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

}  // namespace

void add_export_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command = app.add_subcommand(
      "export", "Write a file's images as files in class folders, or its sparse matrix");
  const auto options = std::make_shared<ExportCommand>();
  cli::add_required(*command, "FILE", options->file, "An HDF5 file");
  cli::add_required(*command, "-o,--output", options->output, "Folder to write", "DIR");
  cli::add_integer(*command, "-j,--threads", options->threads, 1,
                   "Threads that encode (default: all CPUs)")
      ->default_str("");
  cli::add_choice<std::optional<MatrixFormat>>(
      *command, "--format", options->format,
      {{"npz", MatrixFormat::npz}, {"mtx", MatrixFormat::mtx}},
      "Of a sparse matrix: .npz of scipy, or Matrix Market (default: npz)");
  command->add_flag("-f,--force", options->force, "Replace the folder of an earlier export");
  cli::add_memory_budget(*command, options->memory_budget);
  cli::add_open_options(*command, options->open);
  cli::set_help(*command, {"h5pack export train.h5 -o photos-again/",
                           "h5pack export third-party.h5 -o photos/ --images x_train"});
  command->callback([&global, &action, options] {
    cli::check_threads(options->threads);
    cli::check_output(options->output);
    action = [&global, options] {
      const cli::Leavings left{.stopped = "the unfinished folder was removed",
                               .ended =
                                   "the same command removes the unfinished folder, if there is "
                                   "one, and starts again"};
      return cli::run_interruptible(global, left, [&] {
        const OpenCvSilence silence;
        const ExportReport report = export_file(*options, global.quiet);
        cli::print(global.json ? export_json(report) : export_text(report));
        return cli::ExitCode::ok;
      });
    };
  });
}

}  // namespace h5pack
