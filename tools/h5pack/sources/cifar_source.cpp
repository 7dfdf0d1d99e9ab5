#include "h5pack/sources/cifar_source.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>

#include <chunkio/error.hpp>

#include "cli/file_bytes.hpp"
#include "cli/quote.hpp"
#include "h5pack/sources/planar_images.hpp"

namespace h5pack {

namespace {

namespace fs = std::filesystem;
using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kPixelBytes = 3 * kSide * kSide;
/// About 200 KiB, which stay in a processor's cache.
constexpr std::int64_t kRecordsAtATime = 64;

/// Records in all training files for each record in the test file, and in that, of both datasets.
constexpr std::int64_t kTrainRatio = 5;
constexpr std::int64_t kUsualTestRecords = 10'000;

/// The differences between the two datasets.
struct CifarKind {
  std::string name;
  std::string folder;  // As the archive unpacks.
  std::vector<std::string> train_files;
  std::string test_file;
  std::vector<std::int64_t> label_ends;  // Of each byte before the pixels; coarse comes first.

  [[nodiscard]] std::int64_t record_bytes() const { return std::ssize(label_ends) + kPixelBytes; }
};

const CifarKind& cifar10() {
  static const CifarKind kind{"CIFAR-10",
                              "cifar-10-batches-bin",
                              {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                               "data_batch_4.bin", "data_batch_5.bin"},
                              "test_batch.bin",
                              {10}};
  return kind;
}

const CifarKind& cifar100() {
  static const CifarKind kind{
      "CIFAR-100", "cifar-100-binary", {"train.bin"}, "test.bin", {20, 100}};
  return kind;
}

bool exists(const std::string& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

bool any_exists(const std::string& dir, const CifarKind& kind) {
  for (const std::string& name : kind.train_files) {
    if (exists(dir + "/" + name)) return true;
  }
  return exists(dir + "/" + kind.test_file);
}

/// The folder with the batches: DIR itself, or the archive's folder in it.
std::string batch_folder(const std::string& dir, const CifarKind& kind) {
  if (any_exists(dir, kind)) return dir;
  const std::string nested = dir + "/" + kind.folder;
  return any_exists(nested, kind) ? nested : "";
}

[[noreturn]] void throw_no_batches(const std::string& dir) {
  if (!exists(dir)) throw Error(ErrorCode::not_found, "no folder " + cli::quote(dir));
  for (const char* name : {"cifar-10-batches-py", "cifar-100-python", "data_batch_1", "meta"}) {
    if (exists(dir + "/" + name)) {
      throw Error(ErrorCode::not_found,
                  cli::quote(dir) +
                      " holds the Python version of CIFAR; download the binary version "
                      "(cifar-10-binary.tar.gz or cifar-100-binary.tar.gz)");
    }
  }
  throw Error(
      ErrorCode::not_found,
      "no CIFAR batches in " + cli::quote(dir) +
          ": expected data_batch_1.bin (CIFAR-10) or train.bin (CIFAR-100) of the binary version");
}

void require(const std::string& path, const CifarKind& kind) {
  if (!exists(path)) {
    throw Error(ErrorCode::not_found, "missing " + cli::quote(path) + ": " + kind.name +
                                          " comes as one archive; unpack it whole");
  }
}

/// One name a line; blank lines at the end do not count.
std::vector<std::string> read_names(const std::string& path, std::size_t expected) {
  std::istringstream lines(cli::read_text(path));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != expected) {
    throw Error(ErrorCode::corrupt_data, cli::quote(path) + " holds " +
                                             std::to_string(names.size()) +
                                             " class names instead of " + std::to_string(expected) +
                                             "; unpack the archive again");
  }
  return names;
}

/// Appends one batch file to a split.
void add_batch(const std::string& path, const CifarKind& kind,
               std::vector<std::vector<std::int64_t>>& labels, PlanarImages& images) {
  const auto batch = std::make_shared<const RecordFile>(path, kind.record_bytes());
  const std::int64_t count = batch->num_records();
  if (images.count() > 0 && count != images.records_per_file()) {
    throw Error(ErrorCode::corrupt_data,
                cli::quote(path) + " holds " + std::to_string(count) + " images, but " +
                    cli::quote(images.files().paths.front()) + " holds " +
                    std::to_string(images.records_per_file()) + "; unpack the archive again");
  }
  images.add(batch);
  const std::int64_t record = batch->record_bytes();
  std::vector<std::uint8_t> piece(static_cast<std::size_t>(kRecordsAtATime * record));
  for (std::int64_t first = 0; first < count; first += kRecordsAtATime) {
    const std::int64_t records = std::min(kRecordsAtATime, count - first);
    batch->read_records(first, std::span(piece).first(static_cast<std::size_t>(records * record)));
    for (std::int64_t r = 0; r < records; ++r) {
      for (std::size_t i = 0; i < labels.size(); ++i) {
        const std::int64_t offset = r * record + static_cast<std::int64_t>(i);
        const std::int64_t label = piece[static_cast<std::size_t>(offset)];
        if (label >= kind.label_ends[i]) {
          throw Error(ErrorCode::corrupt_data,
                      cli::quote(path) + " has label " + std::to_string(label) + " at byte " +
                          std::to_string(first * record + offset) + ", above " +
                          std::to_string(kind.label_ends[i] - 1) + "; unpack the archive again");
        }
        labels[i].push_back(label);
      }
    }
  }
}

Split read_split(const std::string& name, const std::string& dir, const CifarKind& kind,
                 const std::vector<std::string>& files) {
  auto images = std::make_unique<PlanarImages>(ImageSize{kSide, kSide});
  Split split;
  split.name = name;
  std::vector<std::vector<std::int64_t>> labels(kind.label_ends.size());
  for (const std::string& file : files) add_batch(dir + "/" + file, kind, labels, *images);
  split.fields.push_back(make_field("labels", labels.back()));
  if (labels.size() > 1) split.fields.push_back(make_field("coarse_labels", labels.front()));
  split.images = std::move(images);
  return split;
}

}  // namespace

Listing list_cifar(const std::string& dir) {
  const std::string dir10 = batch_folder(dir, cifar10());
  const std::string dir100 = batch_folder(dir, cifar100());
  if (dir10.empty() && dir100.empty()) throw_no_batches(dir);
  if (!dir10.empty() && !dir100.empty()) {
    throw Error(
        ErrorCode::invalid_argument,
        cli::quote(dir) + " holds both CIFAR-10 and CIFAR-100; give the folder of one of them");
  }
  const bool fine = dir10.empty();
  const CifarKind& kind = fine ? cifar100() : cifar10();
  const std::string& folder = fine ? dir100 : dir10;
  for (const std::string& file : kind.train_files) require(folder + "/" + file, kind);
  require(folder + "/" + kind.test_file, kind);

  Listing listing;
  listing.output_is_folder = true;
  listing.source = {{"kind", "cifar"}, {"dataset", kind.name}, {"path", folder}};
  if (fine) {
    require(folder + "/fine_label_names.txt", kind);
    require(folder + "/coarse_label_names.txt", kind);
    listing.class_names = read_names(folder + "/fine_label_names.txt", 100);
    listing.source["coarse_class_names"] = read_names(folder + "/coarse_label_names.txt", 20);
  } else {
    require(folder + "/batches.meta.txt", kind);
    listing.class_names = read_names(folder + "/batches.meta.txt", 10);
  }
  listing.splits.push_back(read_split("train", folder, kind, kind.train_files));
  listing.splits.push_back(read_split("test", folder, kind, {kind.test_file}));

  // A batch cut at a record's end has a valid length; only its siblings show that images are
  // missing.
  const std::int64_t train = listing.splits[0].images->count();
  const std::int64_t test = listing.splits[1].images->count();
  if (train != kTrainRatio * test) {
    throw Error(ErrorCode::corrupt_data, cli::quote(folder) + " holds " + std::to_string(train) +
                                             " training and " + std::to_string(test) +
                                             " test images; " + kind.name + " has " +
                                             std::to_string(kTrainRatio) +
                                             " training images for each test image, so a batch "
                                             "is cut short; unpack the archive again");
  }
  if (test != kUsualTestRecords) {
    listing.notes.push_back(kind.name + " has " + std::to_string(kUsualTestRecords) +
                            " test images; this copy holds " + std::to_string(test));
  }
  return listing;
}

const SourceKind kCifarSource = {
    .name = "cifar",
    .what = "CIFAR-10 or CIFAR-100 (binary version)",
    .input_name = "DIR",
    .input = "Folder with the .bin files",
    .output = "Folder for train.h5 and test.h5",
    .examples = {"h5pack cifar cifar-10-batches-bin/ -o cifar10/",
                 "h5pack cifar cifar-100-binary/ -o cifar100/ --dry-run"},
    .append_examples =
        {"h5pack append train.h5 cifar cifar-10-batches-bin/ -o larger.h5 --split test",
         "h5pack append train.h5 cifar cifar-10-batches-bin/ -o larger.h5 --dry-run"},
    .options = {},
    .is_at =
        [](const std::string& path) {
          return exists(path + "/data_batch_1.bin") || exists(path + "/train.bin") ||
                 exists(path + "/cifar-10-batches-bin") || exists(path + "/cifar-100-binary");
        },
    .list = [](const SourceRequest& request) { return list_cifar(request.input); },
    .list_again = [](const RecordedOrigin& origin) { return list_cifar(origin.path); }};

}  // namespace h5pack
