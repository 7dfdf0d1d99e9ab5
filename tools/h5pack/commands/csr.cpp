/// h5pack csr: a sparse matrix packed as rows.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>
#include <chunkio/tensor.hpp>

#include "cli/byte_size.hpp"
#include "cli/command.hpp"
#include "cli/escape.hpp"
#include "cli/file_bytes.hpp"
#include "cli/help.hpp"
#include "cli/interruptible.hpp"
#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/progress_text.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/commands/append_csr.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/pack/output_files.hpp"
#include "h5pack/pack/run_fingerprint.hpp"
#include "h5pack/sources/file_stamps.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/stored_rows.hpp"
#include "h5pack/sparse/csr_packer.hpp"
#include "h5pack/sparse/hdf5_source.hpp"
#include "h5pack/sparse/joined_matrix.hpp"
#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {
namespace {

using chunkio::DType;
using chunkio::Error;
using chunkio::ErrorCode;
using Json = nlohmann::ordered_json;

struct CsrCommand {
  std::shared_ptr<OldFile> before = {};  ///< Null: a file of SOURCE alone.
  MatrixRequest source = {};
  std::string output = {};
  CsrOptions options = {};
  std::int64_t threads = 0;
  bool resume = false;
  bool dry_run = false;
};

constexpr std::array<std::pair<const char*, Duplicates>, 3> kDuplicates = {
    {{"sum", Duplicates::sum}, {"last", Duplicates::last}, {"fail", Duplicates::fail}}};

const char* name_of(Duplicates duplicates) {
  return std::find_if(kDuplicates.begin(), kDuplicates.end(),
                      [&](const auto& one) { return one.second == duplicates; })
      ->first;
}

/// A pipe has none: it changes while it is read.
cli::FileStamp stamp_of(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? cli::file_stamp(path) : cli::FileStamp();
}

/// What tells a run from others, which write other files: a run may go on with what one like it has
/// finished.
Json identity_of(const CsrCommand& command, const MatrixSource& source) {
  const CsrOptions& options = command.options;
  std::string rows;
  if (options.rows) {
    for (const chunkio::RowRange& range : options.rows->ranges()) {
      rows += std::to_string(range.begin) + ":" + std::to_string(range.end) + ",";
    }
  }
  std::string files;
  for (const std::string& file : source.files()) {
    const cli::FileStamp stamp = stamp_of(file);
    files += std::to_string(stamp.size) + " " + std::to_string(stamp.mtime_ns) + ",";
  }
  return {{"command", "csr"},
          {"source", cli::json_text(source.description())},
          {"digest of sizes and times of the source files", text_digest(files)},
          {"--dtype", std::string(to_string(source.dtype()))},
          {"--rows", rows.empty() ? "all" : "digest " + text_digest(rows)},
          {"--duplicates", name_of(options.duplicates.value_or(source.duplicates()))},
          {"--order", to_string(options.order)},
          {"--seed", options.seed},
          {"--shards", options.shards}};
}

Json stored_options(const CsrCommand& command, const MatrixSource& source) {
  const CsrOptions& options = command.options;
  Json json = {{"command", command.before ? "append csr" : "csr"},
               {"source", source.description()},
               {"dtype", std::string(to_string(source.dtype()))},
               {"duplicates", name_of(options.duplicates.value_or(source.duplicates()))},
               {"order", to_string(options.order)}};
  if (options.order == RepackOrder::shuffled) json["seed"] = options.seed;
  if (options.rows) json["rows"] = options.rows->count();
  return json;
}

/// Its rows, with those of the source behind them.
/// \param options  of the run; become those of the new file.
std::unique_ptr<MatrixSource> append_to(const CsrCommand& command, Json& options,
                                        std::unique_ptr<MatrixSource> old,
                                        std::unique_ptr<MatrixSource> added) {
  const OldFile& file = *command.before;
  const StoredRows stored(
      chunkio::Dataset::open(file.path, {.images = file.open.images,
                                         .columns_as_rows = true,
                                         .allow_external = file.open.allow_external}));
  const std::int64_t first = next_source_row(*old);
  options = stored.with_stored_options(std::move(options));
  options["appended"].back()["first_source_row"] = first;
  return joined(std::move(old), std::move(added), first);
}

/// The name of the output, or of all of its shards.
std::string output_name(const CsrCommand& command) {
  const std::int64_t shards = command.options.shards;
  return shards > 0 ? chunkio::shard_pattern(command.output, shards) : command.output;
}

/// The files that are written.
std::vector<std::string> output_files(const CsrCommand& command) {
  const std::int64_t shards = command.options.shards;
  if (shards == 0) return {command.output};
  std::vector<std::string> files;
  for (std::int64_t i = 0; i < shards; ++i) {
    files.push_back(chunkio::shard_path(command.output, i, shards));
  }
  return files;
}

/// Finds what would make writing fail. \throws Error as check_output_file().
void check_csr_outputs(const CsrCommand& command, const std::string& input) {
  for (const std::string& file : output_files(command)) {
    check_output_file(file, input, command.options.overwrite || command.resume);
  }
}

/// Leaves what an earlier run like this has finished: the first of its files, since it finishes one
/// after the other. \returns whether that is all. \throws Error as is_complete().
bool take_up(CsrCommand& command, const Json& identity) {
  CsrOptions& options = command.options;
  const std::vector<std::string> files = output_files(command);
  std::size_t done = 0;
  // All are looked at before one may be replaced.
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (is_complete(files[i], options.overwrite, identity) && done == i) ++done;
  }
  options.overwrite = true;  // what was not finished, or not in turn
  if (options.shards > 0 && done > 0) {
    options.shards_done = static_cast<std::int64_t>(done);
    options.done_set = chunkio::Dataset::open(files.front()).info().shard->set;
  }
  return done == files.size();
}

/// What all files hold, which other runs may have written.
void count_all(CsrResult& result, const CsrCommand& command) {
  const chunkio::DatasetInfo info = chunkio::Dataset::open(output_name(command)).info();
  result.num_rows = info.num_samples;
  result.num_columns = info.sparse->columns;
  result.num_entries = info.sparse->num_entries;
  result.file_bytes = 0;
  for (const std::string& file : output_files(command)) {
    result.file_bytes += static_cast<std::int64_t>(std::filesystem::file_size(file));
  }
}

double rate_of(const CsrResult& result) {
  const auto entries = static_cast<double>(result.num_written + result.num_duplicates);
  return result.seconds > 0 ? entries / result.seconds : 0;
}

std::string report_json(const CsrCommand& command, const MatrixSource& source,
                        const CsrResult& result) {
  Json json = {{"command", command.before ? "append csr" : "csr"},
               {"dry_run", command.dry_run},
               {"path", output_name(command)},
               {"source", source.description()},
               {"rows", result.num_rows},
               {"columns", result.num_columns},
               {"entries", result.num_entries},
               {"dtype", std::string(to_string(source.dtype()))},
               {"order", to_string(command.options.order)}};
  if (!command.dry_run) {
    json["duplicates"] = result.num_duplicates;
    json["empty_rows"] = result.num_empty_rows;
    json["longest_row"] = result.longest_row;
    json["buckets"] = result.num_buckets;
    json["bytes"] = result.file_bytes;
    json["read_seconds"] = result.read_seconds;
    json["seconds"] = result.seconds;
    json["entries_per_second"] = rate_of(result);
    json["shards"] = std::max<std::int64_t>(command.options.shards, 1);
    if (command.resume) json["shards_complete_already"] = command.options.shards_done;
  }
  json["left_out"] = source.left_out();
  return cli::json_text(json) + "\n";
}

std::string report_text(const CsrCommand& command, const MatrixSource& source,
                        const CsrResult& result) {
  const double cells =
      static_cast<double>(result.num_rows) * static_cast<double>(result.num_columns);
  std::string text = cli::escape(output_name(command)) + ": " + cli::format_count(result.num_rows) +
                     " x " + cli::format_count(result.num_columns) + " " +
                     std::string(to_string(source.dtype())) + " with " +
                     cli::format_count(result.num_entries) +
                     (result.num_entries == 1 ? " entry (" : " entries (") +
                     cli::percent(static_cast<double>(result.num_entries) / cells, 2) + ")";
  const std::vector<std::string> left_out = source.left_out();
  const std::string lost =
      left_out.empty() ? "" : "  not carried over: " + first_few(left_out) + "\n";
  if (command.dry_run) return text + "\n" + lost;
  if (command.options.shards_done > 0) {
    text += ", " + cli::counted(command.options.shards_done, "shard") + " complete already";
  }
  text += ", " + cli::format_bytes(result.file_bytes) + " in " + cli::decimals(result.seconds, 1) +
          " s (" + cli::decimals(rate_of(result), 0) + " entries/s)\n";
  if (result.num_duplicates > 0) {
    const bool summed = command.options.duplicates.value_or(source.duplicates()) == Duplicates::sum;
    text += "  " + cli::format_count(result.num_duplicates) +
            (result.num_duplicates == 1 ? " entry was" : " entries were") +
            " of a row and column that had one: " +
            (summed ? "values were summed" : "the last one was kept") + "\n";
  }
  if (result.num_empty_rows > 0) {
    text += "  " + cli::counted(result.num_empty_rows, "row") +
            (result.num_empty_rows == 1 ? " has" : " have") + " no entries\n";
  }
  return text + lost;
}

void print_complete(const CsrCommand& command, const cli::GlobalOptions& global) {
  CsrResult result;
  count_all(result, command);
  cli::print(global.json ? cli::json_text(Json{{"command", "csr"},
                                               {"path", output_name(command)},
                                               {"rows", result.num_rows},
                                               {"columns", result.num_columns},
                                               {"entries", result.num_entries},
                                               {"bytes", result.file_bytes},
                                               {"complete_already", true}}) +
                               "\n"
                         : cli::escape(output_name(command)) + ": complete already, " +
                               cli::counted(result.num_rows, "row") + "\n");
}

cli::ExitCode run_csr(CsrCommand& command, const cli::GlobalOptions& global) {
  if (!command.dry_run) check_csr_outputs(command, command.source.input);
  command.options.quiet = global.quiet;
  command.options.threads = static_cast<int>(command.threads);
  command.source.memory_budget = command.options.memory_budget;
  const std::string& input = command.source.input;
  const cli::FileStamp stamp = stamp_of(input);
  const std::string old = command.before ? command.before->path : "";
  const cli::FileStamp old_stamp = stamp_of(old);
  std::unique_ptr<MatrixSource> before;
  if (command.before) {
    before = open_hdf5_matrix({.input = old,
                               .matrix = command.before->open.images,
                               .allow_external = command.before->open.allow_external,
                               .probe = command.before->open.probe,
                               .memory_budget = command.options.memory_budget});
    command.source.dtype = before->dtype();
  }
  std::unique_ptr<MatrixSource> source = open_matrix(command.source);
  Json options = stored_options(command, *source);
  if (before) {
    source = append_to(command, options, std::move(before), std::move(source));
  } else {
    options["identity"] = identity_of(command, *source);
  }
  command.options.options_json = cli::json_text(options);
  if (!command.dry_run) {
    for (const std::string& file : source->files()) check_csr_outputs(command, file);
  }
  if (command.resume && !command.dry_run && take_up(command, options["identity"])) {
    print_complete(command, global);
    return cli::ExitCode::ok;
  }
  {
    const cli::StopSignalToken stopping;
    source->check(stopping.token(), global.quiet);
  }
  command.options.after_reading = [&] {
    const bool same = stamp_of(input) == stamp;
    if (same && stamp_of(old) == old_stamp) return;
    throw Error(ErrorCode::io_failed,
                cli::quote(same ? old : input) +
                    " was changed while it was read; pack when nothing changes");
  };
  CsrResult result = command.dry_run ? count_csr(*source, command.options)
                                     : pack_csr(*source, command.output, command.options);
  if (command.options.shards_done > 0) count_all(result, command);
  cli::print(global.json ? report_json(command, *source, result)
                         : report_text(command, *source, result));
  return cli::ExitCode::ok;
}

void add_csv_options(CLI::App& app, MatrixRequest& source) {
  const cli::Heading heading(app, "CSV files");
  app.add_option("--row-from", source.row_from,
                 "Column that names the row of each entry (default: the first)")
      ->type_name("NAME");
  app.add_option("--column-from", source.column_from,
                 "Column that names its column (default: the second)")
      ->type_name("NAME");
  app.add_option("--value-from", source.value_from,
                 "Column of values, or none: each is 1 (default: the third, if there is one)")
      ->type_name("NAME");
}

void add_hdf5_options(CLI::App& app, MatrixRequest& source) {
  const cli::Heading heading(app, "HDF5 files");
  app.add_option(
         "--images", source.matrix,
         "Path of the matrix, such as layers/counts (default: X or matrix, or the only one)")
      ->type_name("PATH");
  app.add_flag("--allow-external", source.allow_external,
               "Follow links, external storage and virtual datasets into other files; only for "
               "files that you trust");
  cli::add_trust(app, source.probe);
}

void add_file_options(CLI::App& app, CsrCommand& command) {
  const cli::Heading heading(app, "File");
  std::vector<std::pair<std::string, std::optional<DType>>> dtypes;
  for (const DType dtype :
       {DType::float32, DType::float64, DType::uint8, DType::int8, DType::uint16, DType::int16,
        DType::uint32, DType::int32, DType::uint64, DType::int64}) {
    dtypes.emplace_back(std::string(to_string(dtype)), dtype);
  }
  cli::add_choice(app, "--dtype", command.source.dtype, std::move(dtypes),
                  "Type of the values (default: as in .npz and HDF5, else float32)");
  cli::add_rows(app, command.options.rows);
  app.add_flag("--transpose", command.source.transpose,
               "Pack columns as rows, as for genes x cells");
  cli::add_choice<std::optional<Duplicates>>(
      app, "--duplicates", command.options.duplicates, {kDuplicates.begin(), kDuplicates.end()},
      "Of several entries of one row and column take the sum or the last, or stop (default: sum; "
      "of CSV, last)");
  cli::add_choice<RepackOrder>(
      app, "--order", command.options.order,
      {{"shuffled", RepackOrder::shuffled},
       {"source", RepackOrder::source},
       {"stored", RepackOrder::stored}},
      "Order of the rows: shuffled, as in SOURCE before it was shuffled, or as it has them");
  cli::add_seed(app, "--seed", command.options.seed, "Seed of the shuffled order");
  cli::add_integer(app, "--shards", command.options.shards, 1,
                   "Write so many files, OUT-00000-of-N and so on, instead of one")
      ->default_str("");
  app.add_flag("-f,--force", command.options.overwrite, "Replace existing output files");
  app.add_flag("--resume", command.resume,
               "Continue an interrupted run with the same options: complete shards stay");
  cli::add_integer(app, "-j,--threads", command.threads, 1,
                   "Threads that parse and sort (default: all CPUs)")
      ->default_str("");
  cli::add_memory_budget(app, command.options.memory_budget);
  app.add_flag("-n,--dry-run", command.dry_run, "Read and count; write nothing");
}

constexpr const char* kSourceHelp =
    ".npz of scipy; HDF5: .h5ad, 10x .h5, a file of h5pack or a pattern of "
    "shards; .mtx, or CSV with an entry on each line, which both may be "
    "compressed by gzip, or - for standard input";

void set_action(CLI::App& app, const std::shared_ptr<CsrCommand>& command,
                const cli::GlobalOptions& global, cli::Action& action) {
  app.callback([command, &global, &action] {
    cli::check_threads(command->threads);
    cli::check_output(command->output);
    if (command->resume && command->source.input == "-") {
      throw Error(ErrorCode::invalid_argument,
                  "--resume needs a file: what came through standard input is gone");
    }
    // Refuses an impossible number.
    if (command->options.shards > 0) {
      static_cast<void>(chunkio::shard_pattern(command->output, command->options.shards));
    }
    action = [command, &global] {
      const cli::Leavings left{
          .ended = command->before
                       ? "an output that was begun is left as after a kill: the same command with "
                         "--force starts again"
                       : "an output that was begun is left as after a kill: the same command with "
                         "--resume goes on"};
      return cli::run_interruptible(global, left, [&] { return run_csr(*command, global); });
    };
  });
}

}  // namespace

void add_csr_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const sub =
      app.add_subcommand("csr", "Pack a sparse matrix, such as ratings or counts, as rows");
  const auto command = std::make_shared<CsrCommand>();
  cli::add_required(*sub, "SOURCE", command->source.input, kSourceHelp);
  cli::add_required(*sub, "-o,--output", command->output, "File to write", "OUT");
  add_csv_options(*sub, command->source);
  add_hdf5_options(*sub, command->source);
  add_file_options(*sub, *command);
  cli::set_help(
      *sub,
      {"h5pack csr ratings.csv -o ratings.h5ad --row-from userId --column-from movieId",
       "h5pack csr counts.h5ad -o cells.h5ad --images layers/counts --dtype uint16"},
      {"--output", "--row-from", "--column-from", "--value-from", "--images", "--dtype", "--rows",
       "--transpose", "--order", "--seed", "--shards", "--force", "--resume", "--dry-run"});
  set_action(*sub, command, global, action);
}

void add_append_csr(CLI::App& append, const cli::GlobalOptions& global, cli::Action& action,
                    const std::shared_ptr<OldFile>& before) {
  CLI::App* const sub = append.add_subcommand("csr", "Append rows of a sparse matrix");
  const auto command = std::make_shared<CsrCommand>();
  command->before = before;
  command->options.order = RepackOrder::stored;
  cli::add_required(*sub, "SOURCE", command->source.input, kSourceHelp);
  cli::add_required(*sub, "-o,--output", command->output, "File to write", "OUT");
  add_csv_options(*sub, command->source);
  add_hdf5_options(*sub, command->source);
  add_file_options(*sub, *command);
  // The file says the first, and the last has other choices here.
  for (const char* option : {"--dtype", "--rows", "--shards", "--resume", "--order"}) {
    sub->remove_option(sub->get_option(option));
  }
  cli::add_choice<RepackOrder>(
      *sub, "--order", command->options.order,
      {{"stored", RepackOrder::stored}, {"shuffled", RepackOrder::shuffled}},
      "Order of the rows: those of OLD, then the new ones as in SOURCE; or all shuffled")
      ->group("File");
  cli::set_help(
      *sub,
      {"h5pack append train.h5 csr more.h5ad -o larger.h5",
       "h5pack append train.h5 csr more.npz -o larger.h5 --order shuffled"},
      {"--output", "--images", "--transpose", "--order", "--seed", "--force", "--dry-run"});
  set_action(*sub, command, global, action);
}

}  // namespace h5pack
