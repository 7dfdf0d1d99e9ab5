#include "h5pack/sources/csv_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <chunkio/error.hpp>

#include "cli/file_bytes.hpp"
#include "cli/parse_number.hpp"
#include "cli/quote.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/image/image_file.hpp"
#include "h5pack/sources/csv_reader.hpp"
#include "h5pack/sources/image_files.hpp"

namespace h5pack {

namespace {

namespace fs = std::filesystem;
using chunkio::Error;
using chunkio::ErrorCode;

/// Index of the column called `wanted`, or of `fallback` if nothing is wanted.
std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       const std::string& wanted, const std::string& fallback,
                                       const std::string& option, const std::string& file) {
  const auto it = std::find(header.begin(), header.end(), wanted.empty() ? fallback : wanted);
  if (it != header.end()) return static_cast<std::size_t>(it - header.begin());
  if (wanted.empty()) return std::nullopt;
  throw Error(ErrorCode::invalid_argument,
              cli::quote(file) + " has no column " + cli::quote(wanted) + " (" + option +
                  "); its columns are " + cli::joined(header, ", ", cli::quote));
}

void check_image(const std::string& path, const std::string& place) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw Error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_failed,
                place + ": cannot find image " + cli::quote(path) + ": " +
                    std::generic_category().message(errno) +
                    " (--root sets where relative paths start)");
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::unsupported, place + ": " + cli::quote(path) + " is not a regular file");
  }
}

/// Whether the first line is no header but an image: its fields name one.
bool names_image(const std::vector<std::string>& first_line, const fs::path& root) {
  return std::any_of(first_line.begin(), first_line.end(), [&](const std::string& field) {
    struct ::stat status {};
    return format_by_name(field) ||
           (!field.empty() && ::stat((root / field).c_str(), &status) == 0 &&
            S_ISREG(status.st_mode));
  });
}

bool is_fraction(const std::string& text) {
  return cli::parse_number<double>(text) && !cli::parse_number<std::int64_t>(text);
}

/// Labels of names or numbers, as list_csv() documents.
std::vector<std::int64_t> encode_labels(const std::vector<std::string>& texts,
                                        std::vector<std::string>& class_names) {
  std::vector<std::int64_t> labels;
  labels.reserve(texts.size());
  for (const std::string& text : texts) {
    const auto value = cli::parse_number<std::int64_t>(text);
    if (!value) break;
    labels.push_back(*value);
  }
  if (labels.size() == texts.size()) return labels;
  labels.clear();
  class_names = texts;
  std::sort(class_names.begin(), class_names.end());
  class_names.erase(std::unique(class_names.begin(), class_names.end()), class_names.end());
  for (const std::string& text : texts) {
    labels.push_back(std::lower_bound(class_names.begin(), class_names.end(), text) -
                     class_names.begin());
  }
  return labels;
}

}  // namespace

Listing list_csv(const std::string& path, const CsvOptions& options) {
  const bool piped = path == kStandardInput;
  const std::string file = piped ? "standard input" : path;
  const std::string text = piped ? cli::read_standard_input("the list of images", std::string::npos)
                                 : cli::read_text(path);
  if (text.empty()) {
    throw Error(ErrorCode::corrupt_data,
                "standard input is empty: pipe a CSV file into h5pack, or name one");
  }
  CsvReader reader(text, file);
  std::vector<std::string> header;
  if (!reader.next(header)) {
    throw Error(ErrorCode::corrupt_data,
                cli::quote(file) + " has no header: the first line names the columns");
  }
  const fs::path root =
      options.root.empty() ? fs::path(path).parent_path() : fs::path(options.root);
  const auto named_column = find_column(header, options.path_column, "path", "--path-column", file);
  if (!named_column && names_image(header, root)) {
    throw Error(ErrorCode::corrupt_data, cli::quote(file) +
                                             " has no header: its first line names an image; put "
                                             "a line such as path,label above it");
  }
  const std::size_t path_column = named_column.value_or(0);
  const auto label_column =
      find_column(header, options.label_column, "label", "--label-column", file);
  if (label_column == path_column) {
    throw Error(ErrorCode::invalid_argument,
                cli::quote(file) + ": column " + cli::quote(header[path_column]) +
                    " would give both paths and labels; set --path-column or --label-column");
  }

  std::vector<std::string> paths;
  std::vector<std::string> label_texts;
  std::vector<std::string> fields;
  while (reader.next(fields)) {
    if (fields.size() != header.size()) {
      throw Error(ErrorCode::corrupt_data,
                  reader.place() + " has " + std::to_string(fields.size()) +
                      " fields, the header has " + std::to_string(header.size()));
    }
    if (fields[path_column].empty()) {
      throw Error(ErrorCode::corrupt_data, reader.place() + " has an empty path");
    }
    paths.push_back((root / fields[path_column]).string());
    if (!options.keep_missing) check_image(paths.back(), reader.place());
    if (!label_column) continue;
    if (fields[*label_column].empty()) {
      throw Error(ErrorCode::corrupt_data, reader.place() + " has an empty label");
    }
    label_texts.push_back(fields[*label_column]);
  }
  if (paths.empty()) {
    throw Error(ErrorCode::not_found, cli::quote(file) + " lists no images: it has only a header");
  }

  Listing listing;
  listing.source = {{"kind", "csv"}, {"path", path}, {"path_column", header[path_column]}};
  if (!options.root.empty()) listing.source["root"] = options.root;
  Split split;
  if (label_column) {
    listing.source["label_column"] = header[*label_column];
    split.fields.push_back(make_field("labels", encode_labels(label_texts, listing.class_names)));
    if (std::any_of(label_texts.begin(), label_texts.end(), &is_fraction)) {
      listing.notes.push_back(
          "column " + cli::quote(header[*label_column]) + " of " + cli::quote(file) +
          " has numbers with a fraction; labels are whole numbers, so each number became the name "
          "of a class, and names are sorted as text");
    }
  } else {
    listing.notes.push_back(cli::quote(file) +
                            " has no column 'label', so there are no labels "
                            "(--label-column names another)");
  }
  split.images = std::make_unique<ImageFiles>(std::move(paths));
  listing.splits.push_back(std::move(split));
  return listing;
}

namespace {

constexpr SourceOption kCsvOptions[] = {
    {"--path-column", "NAME", "Column with the paths (default: path, else the first)"},
    {"--label-column", "NAME",
     "Column with class names or numbers (default: label, if there is one)"},
    {"--root", "DIR",
     "Where relative paths start (default: the folder of FILE; with -, the current one)"}};

Listing list_requested_csv(const SourceRequest& request) {
  const auto option = [&](const char* flag) {
    const auto found = request.options.find(flag);
    return found == request.options.end() ? std::string() : found->second;
  };
  return list_csv(request.input, {.path_column = option("--path-column"),
                                  .label_column = option("--label-column"),
                                  .root = option("--root"),
                                  .keep_missing = request.keep_missing});
}

Listing list_recorded_csv(const RecordedOrigin& origin) {
  if (!origin.moved && origin.path == kStandardInput) {
    throw Error(ErrorCode::not_found, cli::quote(origin.file) +
                                          " was packed from a list on standard input; name that "
                                          "list with --against");
  }
  return list_csv(origin.path, {.path_column = recorded_text(origin.source, "path_column"),
                                .label_column = recorded_text(origin.source, "label_column"),
                                .root = recorded_text(origin.source, "root")});
}

}  // namespace

const SourceKind kCsvSource = {
    .name = "csv",
    .what = "the images that a CSV file lists",
    .input_name = "FILE",
    .input = "CSV file whose first line names the columns; - reads standard input",
    .output = "File to write",
    .examples = {"h5pack csv list.csv -o train.h5",
                 "h5pack csv list.csv -o train.h5 --path-column file --label-column class"},
    .append_examples = {"h5pack append train.h5 csv more.csv -o larger.h5",
                        "h5pack append train.h5 csv more.csv -o larger.h5 --order shuffled"},
    .options = kCsvOptions,
    .is_at =
        [](const std::string& path) {
          std::error_code unknown;
          return !fs::is_directory(path, unknown) &&
                 (path.ends_with(".csv") || path.ends_with(".CSV"));
        },
    .list = list_requested_csv,
    .list_again = list_recorded_csv};

}  // namespace h5pack
