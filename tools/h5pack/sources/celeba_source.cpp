#include "h5pack/sources/celeba_source.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/file_bytes.hpp"
#include "cli/parse_number.hpp"
#include "cli/quote.hpp"
#include "h5pack/sources/csv_reader.hpp"
#include "h5pack/sources/folder_source.hpp"
#include "h5pack/sources/image_files.hpp"

namespace h5pack {

namespace {

namespace fs = std::filesystem;
using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::size_t kSplits = 3;
constexpr std::array<const char*, kSplits> kSplitNames = {"train", "val", "test"};

bool is_directory(const std::string& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

std::string image_folder(const std::string& dir) {
  if (!is_directory(dir)) throw Error(ErrorCode::not_found, "no folder " + cli::quote(dir));
  const std::string outer = dir + "/img_align_celeba";
  if (!is_directory(outer)) {
    throw Error(ErrorCode::not_found, "no folder img_align_celeba in " + cli::quote(dir) +
                                          ": unpack img_align_celeba.zip there");
  }
  // One popular mirror packs the folder into a folder of the same name.
  const std::string inner = outer + "/img_align_celeba";
  return is_directory(inner) ? inner : outer;
}

/// The table STEM.txt or STEM.csv in DIR, DIR/Anno or DIR/Eval; empty if there is none.
std::string find_table(const std::string& dir, const std::string& stem) {
  for (const char* folder : {"", "/Anno", "/Eval"}) {
    for (const char* extension : {".txt", ".csv"}) {
      const std::string path = dir + folder + "/" + stem + extension;
      std::error_code unknown;
      if (fs::exists(path, unknown)) return path;
    }
  }
  return "";
}

/// How the first lines of a txt table look. A csv table always has one header line.
enum class TxtHeader : std::uint8_t {
  none,             ///< Rows from the first line on.
  count_and_names,  ///< A line with the number of rows, then a line with the names of the values.
};

std::string place_of(const std::string& path, std::int64_t line) {
  return cli::quote(path) + " line " + std::to_string(line);
}

/// Words of one line, split at blanks.
std::vector<std::string> split_words(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

/// A table of integers by image. The first value of a row is a file name and not counted as a
/// column.
class CelebaTable {
 public:
  /// Reads `path`, a csv table if its name ends so. Line ends may be LF or CRLF.
  /// \param columns  expected number of values a row; 0: as many as the header names.
  /// \param file_names  of the images, each of which has a row, and no row is of another.
  /// \throws Error not_found, also of rows and images that do not match: the first few are named;
  ///         io_failed; corrupt_data, naming the line: a wrong count of rows or values, something
  ///         that is no 32-bit integer, a file name for the second time.
  CelebaTable(const std::string& path, TxtHeader header, std::size_t columns,
              const std::vector<std::string>& file_names);

  [[nodiscard]] const std::vector<std::string>& columns() const noexcept { return columns_; }
  [[nodiscard]] chunkio::Shape row_shape() const {
    return chunkio::Shape{static_cast<std::int64_t>(num_columns_)};
  }
  [[nodiscard]] std::int32_t value(std::size_t image, std::size_t column) const {
    return values_[row_of_image_[image] * num_columns_ + column];
  }
  /// "'PATH' line 17", for messages about the contents of a row.
  [[nodiscard]] std::string place(std::size_t image) const {
    return place_of(path_, lines_[row_of_image_[image]]);
  }
  /// Values of the wanted images as a field of element type T.
  template <class T, class Convert>
  [[nodiscard]] chunkio::FieldData field(const std::string& name,
                                         const std::vector<std::size_t>& images,
                                         chunkio::Shape row_shape, const Convert& convert) const {
    std::vector<T> values;
    values.reserve(images.size() * num_columns_);
    for (const std::size_t image : images) {
      for (std::size_t c = 0; c < num_columns_; ++c) {
        values.push_back(convert(image, value(image, c)));
      }
    }
    return make_field(name, values, row_shape);
  }

 private:
  void read_txt(const std::string& text, TxtHeader header, std::size_t columns);
  void read_csv(std::string_view text, std::size_t columns);
  void add_row(const std::vector<std::string>& fields, std::int64_t line);
  void join(const std::vector<std::string>& file_names);

  std::string path_;
  std::vector<std::string> columns_;
  std::size_t num_columns_ = 0;
  std::vector<std::int32_t> values_;                   // Row-major.
  std::vector<std::int64_t> lines_;                    // Of each row.
  std::unordered_map<std::string, std::size_t> rows_;  // By file name.
  std::vector<std::size_t> row_of_image_;
};

CelebaTable::CelebaTable(const std::string& path, TxtHeader header, std::size_t columns,
                         const std::vector<std::string>& file_names)
    : path_(path) {
  const std::string text = cli::read_text(path);
  if (path.ends_with(".csv")) {
    read_csv(text, columns);
  } else {
    read_txt(text, header, columns);
  }
  join(file_names);
}

void CelebaTable::read_csv(std::string_view text, std::size_t columns) {
  CsvReader reader(text, path_);
  std::vector<std::string> fields;
  if (!reader.next(fields) || fields.size() < 2) {
    throw Error(ErrorCode::corrupt_data,
                cli::quote(path_) + " has no header with a name column and values");
  }
  columns_.assign(fields.begin() + 1, fields.end());
  num_columns_ = columns_.size();
  if (columns != 0 && num_columns_ != columns) {
    throw Error(ErrorCode::corrupt_data, reader.place() + " names " + std::to_string(num_columns_) +
                                             " values instead of " + std::to_string(columns));
  }
  while (reader.next(fields)) add_row(fields, reader.line());
}

void CelebaTable::read_txt(const std::string& text, TxtHeader header, std::size_t columns) {
  num_columns_ = columns;
  std::optional<std::int32_t> count;
  std::int64_t line_number = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = split_words(line);
    ++line_number;
    if (header == TxtHeader::count_and_names && line_number == 1) {
      if (words.size() == 1) count = cli::parse_number<std::int32_t>(words[0]);
      if (!count) {
        throw Error(ErrorCode::corrupt_data,
                    place_of(path_, line_number) + " should hold the number of rows");
      }
    } else if (header == TxtHeader::count_and_names && line_number == 2) {
      columns_ = words;
      if (words.empty() || (columns != 0 && words.size() != columns)) {
        throw Error(ErrorCode::corrupt_data,
                    place_of(path_, line_number) + " names " + std::to_string(words.size()) +
                        " values" + (columns == 0 ? "" : " instead of " + std::to_string(columns)));
      }
      num_columns_ = columns_.size();
    } else if (!words.empty()) {
      add_row(words, line_number);
    }
  }
  if (count && static_cast<std::size_t>(std::max(*count, 0)) != lines_.size()) {
    throw Error(ErrorCode::corrupt_data,
                place_of(path_, 1) + " announces " + std::to_string(*count) +
                    " rows, but there are " + std::to_string(lines_.size()) +
                    "; the file is cut short or edited, download it again");
  }
}

void CelebaTable::add_row(const std::vector<std::string>& fields, std::int64_t line) {
  if (fields.size() != num_columns_ + 1) {
    throw Error(ErrorCode::corrupt_data, place_of(path_, line) + " holds " +
                                             std::to_string(fields.size() - 1) +
                                             " values instead of " + std::to_string(num_columns_));
  }
  const auto [existing, inserted] = rows_.try_emplace(fields[0], lines_.size());
  if (!inserted) {
    throw Error(ErrorCode::corrupt_data, place_of(path_, line) + " repeats " +
                                             cli::quote(fields[0]) + " of line " +
                                             std::to_string(lines_[existing->second]));
  }
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const auto value = cli::parse_number<std::int32_t>(fields[i]);
    if (!value) {
      throw Error(ErrorCode::corrupt_data,
                  place_of(path_, line) + ": " + cli::quote(fields[i]) + " is not a whole number");
    }
    values_.push_back(*value);
  }
  lines_.push_back(line);
}

void CelebaTable::join(const std::vector<std::string>& file_names) {
  std::vector<std::string> without_row;
  std::vector<bool> used(lines_.size(), false);
  for (const std::string& name : file_names) {
    const auto it = rows_.find(name);
    if (it == rows_.end()) {
      without_row.push_back(name);
      continue;
    }
    row_of_image_.push_back(it->second);
    used[it->second] = true;
  }
  if (!without_row.empty()) {
    throw Error(ErrorCode::not_found, cli::quote(path_) + " has no row for image " +
                                          first_few(without_row) +
                                          "; download the table again, or remove the images");
  }
  if (lines_.size() != file_names.size()) {
    std::vector<std::string> without_image;
    for (const auto& [name, row] : rows_) {
      if (!used[row]) without_image.push_back(name);
    }
    std::sort(without_image.begin(), without_image.end());
    throw Error(ErrorCode::not_found,
                cli::quote(path_) + " has rows without an image: " + first_few(without_image) +
                    "; unpack the images again, or remove the rows");
  }
}

/// For each split, the images in it.
std::array<std::vector<std::size_t>, kSplits> partition(const std::optional<CelebaTable>& eval,
                                                        std::size_t num_images) {
  std::array<std::vector<std::size_t>, kSplits> members;
  for (std::size_t i = 0; i < num_images; ++i) {
    std::size_t split = 0;
    if (eval) {
      const std::int32_t value = eval->value(i, 0);
      if (value < 0 || value >= static_cast<std::int32_t>(kSplits)) {
        throw Error(ErrorCode::corrupt_data, eval->place(i) + ": partition " +
                                                 std::to_string(value) +
                                                 " is none of 0 (train), 1 (val) and 2 (test)");
      }
      split = static_cast<std::size_t>(value);
    }
    members[split].push_back(i);
  }
  return members;
}

}  // namespace

Listing list_celeba(const std::string& dir) {
  const std::string folder = image_folder(dir);
  const std::vector<std::string> paths = list_flat_folder(folder);
  if (paths.empty()) {
    throw Error(ErrorCode::not_found,
                "no images in " + cli::quote(folder) + ": unpack img_align_celeba.zip there");
  }
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const std::string& path : paths) names.push_back(path.substr(folder.size() + 1));

  const std::string attributes_path = find_table(dir, "list_attr_celeba");
  if (attributes_path.empty()) {
    throw Error(ErrorCode::not_found, "no list_attr_celeba.txt or .csv in " + cli::quote(dir) +
                                          "; for images without attributes use h5pack folder");
  }
  const CelebaTable attributes(attributes_path, TxtHeader::count_and_names, 0, names);
  const auto find = [&](const std::string& stem, TxtHeader header,
                        std::size_t columns) -> std::optional<CelebaTable> {
    const std::string path = find_table(dir, stem);
    if (path.empty()) return std::nullopt;
    return CelebaTable(path, header, columns, names);
  };
  const auto eval = find("list_eval_partition", TxtHeader::none, 1);
  const auto identity = find("identity_CelebA", TxtHeader::none, 1);
  const auto landmarks = find("list_landmarks_align_celeba", TxtHeader::count_and_names, 0);

  Listing listing;
  listing.output_is_folder = true;
  listing.attribute_names = attributes.columns();
  listing.source = {{"kind", "celeba"}, {"path", dir}};
  if (landmarks) listing.source["landmark_names"] = landmarks->columns();
  if (!eval) {
    listing.notes.push_back("no list_eval_partition in " + cli::quote(dir) +
                            ": all images go to train.h5");
  }
  const auto binary = [&](std::size_t image, std::int32_t value) {
    if (value != 1 && value != -1) {
      throw Error(ErrorCode::corrupt_data, attributes.place(image) + ": attribute value " +
                                               std::to_string(value) + " is neither -1 nor 1");
    }
    return static_cast<std::uint8_t>(value == 1 ? 1 : 0);
  };
  const auto plain = [](std::size_t, std::int32_t value) { return value; };
  const auto members = partition(eval, paths.size());
  for (std::size_t s = 0; s < kSplits; ++s) {
    if (members[s].empty()) continue;
    Split split;
    split.name = kSplitNames[s];
    std::vector<std::string> split_paths;
    split_paths.reserve(members[s].size());
    for (const std::size_t i : members[s]) split_paths.push_back(paths[i]);
    split.images = std::make_unique<ImageFiles>(std::move(split_paths));
    split.fields.push_back(
        attributes.field<std::uint8_t>("labels", members[s], attributes.row_shape(), binary));
    if (identity) {
      split.fields.push_back(identity->field<std::int64_t>("identity", members[s], {}, plain));
    }
    if (landmarks) {
      split.fields.push_back(
          landmarks->field<std::int32_t>("landmarks", members[s], landmarks->row_shape(), plain));
    }
    listing.splits.push_back(std::move(split));
  }
  return listing;
}

const SourceKind kCelebaSource = {
    .name = "celeba",
    .what = "CelebA with its attributes",
    .input_name = "DIR",
    .input = "Folder with img_align_celeba/ and list_attr_celeba.txt or .csv",
    .output = "Folder for train.h5, val.h5 and test.h5",
    .examples = {"h5pack celeba celeba/ -o celeba-packed/",
                 "h5pack celeba celeba/ -o celeba-packed/ --center-crop 178x178 --resize 64"},
    .append_examples = {"h5pack append train.h5 celeba celeba/ -o larger.h5 --split val",
                        "h5pack append train.h5 celeba celeba/ -o larger.h5 --dry-run"},
    .options = {},
    .is_at = [](const std::string& path) { return is_directory(path + "/img_align_celeba"); },
    .list = [](const SourceRequest& request) { return list_celeba(request.input); },
    .list_again = [](const RecordedOrigin& origin) { return list_celeba(origin.path); }};

}  // namespace h5pack
