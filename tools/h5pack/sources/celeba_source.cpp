#include "h5pack/sources/celeba_source.hpp"

#include <array>
#include <filesystem>
#include <optional>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/sources/celeba_table.hpp"
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

std::optional<CelebaTable> read_if_present(const std::string& dir, const std::string& stem,
                                           TxtHeader header, std::size_t columns) {
  const std::string path = find_table(dir, stem);
  if (path.empty()) return std::nullopt;
  return CelebaTable::read(path, header, columns);
}

/// A table with the row of each image, in image order.
struct JoinedTable {
  CelebaTable table;
  std::vector<std::size_t> rows;

  JoinedTable(CelebaTable table_, const std::vector<std::string>& file_names)
      : table(std::move(table_)), rows(table.rows_of(file_names)) {}

  /// Values of the wanted images as a field of element type T.
  template <class T, class Convert>
  [[nodiscard]] chunkio::FieldData field(const std::string& name,
                                         const std::vector<std::size_t>& images,
                                         chunkio::Shape row_shape, const Convert& convert) const {
    std::vector<T> values;
    values.reserve(images.size() * table.num_columns());
    for (const std::size_t image : images) {
      for (std::size_t c = 0; c < table.num_columns(); ++c) {
        values.push_back(convert(rows[image], table.value(rows[image], c)));
      }
    }
    return make_field(name, values, row_shape);
  }
};

/// For each split, the images in it.
std::array<std::vector<std::size_t>, kSplits> partition(const std::optional<JoinedTable>& eval,
                                                        std::size_t num_images) {
  std::array<std::vector<std::size_t>, kSplits> members;
  for (std::size_t i = 0; i < num_images; ++i) {
    std::size_t split = 0;
    if (eval) {
      const std::int32_t value = eval->table.value(eval->rows[i], 0);
      if (value < 0 || value >= static_cast<std::int32_t>(kSplits)) {
        throw Error(ErrorCode::corrupt_data, eval->table.place(eval->rows[i]) + ": partition " +
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
  const JoinedTable attributes(CelebaTable::read(attributes_path, TxtHeader::count_and_names, 0),
                               names);
  const auto join = [&](const std::string& stem, TxtHeader header,
                        std::size_t columns) -> std::optional<JoinedTable> {
    auto table = read_if_present(dir, stem, header, columns);
    if (!table) return std::nullopt;
    return JoinedTable(std::move(*table), names);
  };
  const auto eval = join("list_eval_partition", TxtHeader::none, 1);
  const auto identity = join("identity_CelebA", TxtHeader::none, 1);
  const auto landmarks = join("list_landmarks_align_celeba", TxtHeader::count_and_names, 0);

  Listing listing;
  listing.output_is_folder = true;
  listing.attribute_names = attributes.table.columns();
  listing.source = {{"kind", "celeba"}, {"path", dir}};
  if (landmarks) listing.source["landmark_names"] = landmarks->table.columns();
  if (!eval) {
    listing.notes.push_back("no list_eval_partition in " + cli::quote(dir) +
                            ": all images go to train.h5");
  }
  const auto binary = [&](std::size_t row, std::int32_t value) {
    if (value != 1 && value != -1) {
      throw Error(ErrorCode::corrupt_data, attributes.table.place(row) + ": attribute value " +
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
    const auto columns = [](const JoinedTable& joined) {
      return chunkio::Shape{static_cast<std::int64_t>(joined.table.num_columns())};
    };
    split.fields.push_back(
        attributes.field<std::uint8_t>("labels", members[s], columns(attributes), binary));
    if (identity) {
      split.fields.push_back(identity->field<std::int64_t>("identity", members[s], {}, plain));
    }
    if (landmarks) {
      split.fields.push_back(
          landmarks->field<std::int32_t>("landmarks", members[s], columns(*landmarks), plain));
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
    .is_at =
        [](const std::string& path) {
          std::error_code unknown;
          return std::filesystem::exists(std::filesystem::path(path) / "img_align_celeba", unknown);
        },
    .list = [](const SourceRequest& request) { return list_celeba(request.input); },
    .list_again = [](const RecordedOrigin& origin) { return list_celeba(origin.path); }};

}  // namespace h5pack
