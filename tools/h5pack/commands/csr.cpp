/// h5pack csr: a sparse matrix packed as rows.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
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
  bool dry_run = false;
};

constexpr std::array<std::pair<const char*, Duplicates>, 3> kDuplicates = {
    {{"sum", Duplicates::sum}, {"last", Duplicates::last}, {"fail", Duplicates::fail}}};

const char* name_of(Duplicates duplicates) {
  return std::find_if(kDuplicates.begin(), kDuplicates.end(),
                      [&](const auto& one) { return one.second == duplicates; })
      ->first;
}

std::string options_json(const CsrCommand& command, const MatrixSource& source) {
  const CsrOptions& options = command.options;
  Json json = {{"command", command.before ? "append csr" : "csr"},
               {"source", source.description()},
               {"dtype", std::string(to_string(source.dtype()))},
               {"duplicates", name_of(options.duplicates.value_or(source.duplicates()))},
               {"order", to_string(options.order)}};
  if (options.order == RepackOrder::shuffled) json["seed"] = options.seed;
  if (options.rows) json["rows"] = options.rows->count();
  return cli::json_text(json);
}

/// Its rows, with those of the source behind them. Blocks on I/O: a copy of damaged rows would get
/// digests that match, so they are compared first.
/// \param options_json  of the run; becomes that of the new file.
std::unique_ptr<MatrixSource> append_to(const CsrCommand& command, std::string& options_json,
                                        std::unique_ptr<MatrixSource> old,
                                        std::unique_ptr<MatrixSource> added) {
  const OldFile& file = *command.before;
  const StoredRows stored(
      chunkio::Dataset::open(file.path, {.images = file.open.images,
                                         .columns_as_rows = true,
                                         .allow_external = file.open.allow_external}));
  const cli::StopSignalToken stopping;
  stored.check_stored(stopping.token(), command.options.quiet);
  const std::int64_t first = next_source_row(*old);
  Json json = stored.with_stored_options(Json::parse(options_json));
  json["appended"].back()["first_source_row"] = first;
  options_json = cli::json_text(json);
  return joined(std::move(old), std::move(added), first);
}

/// The name of the output, or of all of its shards.
std::string output_name(const CsrCommand& command) {
  const std::int64_t shards = command.options.shards;
  return shards > 0 ? chunkio::shard_pattern(command.output, shards) : command.output;
}

/// Finds what would make writing fail. \throws Error as check_output_file().
void check_csr_outputs(const CsrCommand& command, const std::string& input) {
  const std::int64_t shards = command.options.shards;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(shards, 1); ++i) {
    check_output_file(shards > 0 ? chunkio::shard_path(command.output, i, shards) : command.output,
                      input, command.options.overwrite);
  }
}

double rate_of(const CsrResult& result) {
  const auto entries = static_cast<double>(result.num_entries + result.num_duplicates);
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
  text += ", " + cli::format_bytes(result.file_bytes) + " in " + cli::decimals(result.seconds, 1) +
          " s (" + cli::decimals(rate_of(result), 0) + " entries/s)\n";
  if (result.num_duplicates > 0) {
    const bool summed = command.options.duplicates.value_or(source.duplicates()) == Duplicates::sum;
    text += "  " + cli::format_count(result.num_duplicates) +
            " entries were of a row and column that had one: " +
            (summed ? "values were summed" : "the last one was kept") + "\n";
  }
  if (result.num_empty_rows > 0) {
    text += "  " + cli::counted(result.num_empty_rows, "row") +
            (result.num_empty_rows == 1 ? " has" : " have") + " no entries\n";
  }
  return text + lost;
}

cli::ExitCode run_csr(CsrCommand& command, const cli::GlobalOptions& global) {
  if (!command.dry_run) check_csr_outputs(command, command.source.input);
  command.options.quiet = global.quiet;
  command.options.threads = static_cast<int>(command.threads);
  command.source.memory_budget = command.options.memory_budget;
  const std::string& input = command.source.input;
  const cli::FileStamp stamp = cli::file_stamp(input);
  const std::string old = command.before ? command.before->path : "";
  const cli::FileStamp old_stamp = command.before ? cli::file_stamp(old) : cli::FileStamp();
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
  command.options.options_json = options_json(command, *source);
  if (before) {
    source = append_to(command, command.options.options_json, std::move(before), std::move(source));
  }
  if (!command.dry_run) {
    for (const std::string& file : source->files()) check_csr_outputs(command, file);
  }
  command.options.before_publishing = [&] {
    const bool same = cli::file_stamp(input) == stamp;
    if (same && (old.empty() || cli::file_stamp(old) == old_stamp)) return;
    throw Error(ErrorCode::io_failed,
                cli::quote(same ? old : input) +
                    " was changed while it was read; pack when nothing changes");
  };
  const CsrResult result = command.dry_run ? count_csr(*source, command.options)
                                           : pack_csr(*source, command.output, command.options);
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
    // Refuses an impossible number.
    if (command->options.shards > 0) {
      static_cast<void>(chunkio::shard_pattern(command->output, command->options.shards));
    }
    action = [command, &global] {
      const cli::Leavings left{
          .ended =
              "an output that was begun is left as after a kill: the same command with "
              "--force starts again"};
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
  cli::set_help(*sub,
                {"h5pack csr ratings.csv -o ratings.h5ad --row-from userId --column-from movieId",
                 "h5pack csr counts.h5ad -o cells.h5ad --images layers/counts --dtype uint16"},
                {"--output", "--row-from", "--column-from", "--value-from", "--images", "--dtype",
                 "--rows", "--transpose", "--order", "--seed", "--shards", "--force", "--dry-run"});
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
  for (const char* option : {"--dtype", "--rows", "--shards", "--order"}) {
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
