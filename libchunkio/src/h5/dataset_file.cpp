#include "h5/dataset_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <hdf5.h>

#include "base/shard_names.hpp"
#include "h5/attributes.hpp"
#include "h5/description_reader.hpp"
#include "h5/error_stack.hpp"
#include "h5/field_discovery.hpp"
#include "h5/file_contents.hpp"
#include "h5/leading_discovery.hpp"
#include "h5/library.hpp"
#include "h5/probe.hpp"
#include "h5/schema.hpp"
#include "h5/source_file.hpp"
#include "io/ask_again.hpp"
#include "io/local_file.hpp"
#include "io/remote_file.hpp"

namespace chunkio {
namespace {

using namespace h5;  // NOLINT(google-build-using-namespace): this file is part of that layer

/// X-*-of-00008.h5 for X-00003-of-00008.h5; absent for a file of another name.
std::optional<std::string> pattern_of(const std::string& file) {
  const std::size_t end = file.rfind("-of-");
  if (end == std::string::npos) return std::nullopt;
  const std::size_t before = file.find_last_not_of("0123456789", end - 1);
  if (before == std::string::npos || before + 1 == end || file[before] != '-') return std::nullopt;
  const std::string pattern = file.substr(0, before + 1) + "*" + file.substr(end);
  try {
    if (!base::ShardPattern::parse(pattern)) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // an impossible number of files
  }
  return pattern;
}

/// What to open instead of a folder.
std::string files_in(const std::string& folder) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if (extension == ".h5" || extension == ".hdf5") names.push_back(entry->path().string());
  }
  if (names.empty()) return "give the path of an HDF5 file";
  std::sort(names.begin(), names.end());
  std::string text = "open one of its files: ";
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  if (names.size() > kMostNamed) {
    text += " and " + std::to_string(names.size() - kMostNamed) + " more";
  }
  if (const auto pattern = pattern_of(names.front())) {
    text += "; or all files of one dataset: " + printable(*pattern);
  }
  return text;
}

/// The signature stands at byte 0, or after a user block of 512, 1024, 2048, ... bytes.
/// \throws Error corrupt_data if it is nowhere.
void check_signature(const ByteSource& source) {
  constexpr std::array<unsigned char, 8> kSignature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  const std::int64_t size = source.size();
  for (std::int64_t offset = 0; offset + 8 <= size; offset = offset == 0 ? 512 : offset * 2) {
    std::array<std::byte, 8> bytes{};
    source.read_at(offset, bytes, {});
    if (std::equal(
            bytes.begin(), bytes.end(), kSignature.begin(),
            [](std::byte a, unsigned char b) { return std::to_integer<unsigned char>(a) == b; })) {
      return;
    }
  }
  throw Error(ErrorCode::corrupt_data,
              source.name() + (size == 0 ? " is empty, not an HDF5 file" : " is not an HDF5 file") +
                  "; make one with h5pack");
}

/// What is to be read must have been opened the first time: libhdf5 keeps a header of which it
/// found a part damaged, and later opens the object without that part, attributes missing. \throws
/// Error corrupt_data.
void refuse_damaged(const FileContents& contents, const OpenOptions& options) {
  for (const std::string& wanted :
       {options.images.empty() ? std::string(kImages) : without_leading_slash(options.images),
        without_leading_slash(options.labels), std::string(kLabels), std::string(kLabel),
        std::string(kSampleDigests)}) {
    for (const DamagedObject& object : contents.damaged) {
      if (wanted != object.name && !wanted.starts_with(object.name + "/")) continue;
      throw Error(ErrorCode::corrupt_data,
                  object.reason + "; the file is damaged, copy or download it again");
    }
  }
}

std::shared_ptr<const Dataset::Impl> open_once(std::shared_ptr<const ByteSource> bytes,
                                               const OpenOptions& options, LinkFiles link_files) {
  auto impl = std::make_shared<Dataset::Impl>();
  DatasetInfo& info = impl->info;
  info.path = bytes->name();
  impl->opened_version = bytes->version();
  check_signature(*bytes);
  if (!options.probe.empty()) probe_file(options.probe, *bytes);
  impl->external = options.allow_external ? External::allowed : External::refused;
  const auto guard = Library::lock();
  impl->opened = std::make_unique<SourceFile>(bytes, impl->external);
  impl->bytes = std::move(bytes);
  try {
    impl->opened->open();
    if (link_files == LinkFiles::refused) refuse_link(impl->file(), info.path);
    const FileContents contents = list_datasets(impl->file(), info.path, impl->external);
    refuse_damaged(contents, options);
    info.damaged_objects = contents.damaged;
    open_leading(*impl, contents, options);
    read_description(impl->file().get(), impl->leading->dataset.get(), info);
    find_fields(*impl, contents, options, link_files);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::hdf5_failed) throw;
    const auto failure = impl->opened->take_failure();
    if (failure) throw Error(failure->code(), error.what());
    // What libhdf5 cannot make sense of in a file that it opened is damage.
    throw Error(ErrorCode::corrupt_data,
                std::string(error.what()) + "; the file is damaged, copy or download it again");
  }
  return impl;
}

}  // namespace

void h5::refuse_link(const FileId& file, const std::string& path) {
  const auto pattern =
      AttributeReader(file.get(), "the root group", path).text(root_attribute::kShardPattern);
  if (!pattern || !base::ShardPattern::parse(*pattern)) return;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  throw Error(ErrorCode::refused_by_policy, path +
                                                " holds no images, it links files that do; open '" +
                                                folder + printable(*pattern) + "' instead");
}

std::shared_ptr<const Dataset::Impl> h5::open_dataset_file(const std::string& path,
                                                           const OpenOptions& options,
                                                           LinkFiles link_files) {
  if (io::is_remote(path)) {
    return open_dataset_file(io::open_source(path, options.remote), options, link_files);
  }
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    throw Error(ErrorCode::unsupported, path + " is a folder; " + files_in(path));
  }
  return open_dataset_file(std::make_shared<io::LocalFile>(path), options, link_files);
}

std::shared_ptr<const Dataset::Impl> h5::open_dataset_file(std::shared_ptr<const ByteSource> bytes,
                                                           const OpenOptions& options,
                                                           LinkFiles link_files) {
  // What describes the file may have come wrong, now or when it was kept. Once more, no oftener: a
  // probe takes up to ten seconds each time.
  return io::ask_again(
      *bytes, [&] { return open_once(bytes, options, link_files); },
      [](ErrorCode code) { return code == ErrorCode::corrupt_data; }, 2);
}

void Dataset::Impl::check_unchanged() const {
  for (const auto& shard : shards) shard->check_unchanged();
  if (!shards.empty() || bytes->version() == opened_version) return;
  const io::LocalFile* local = io::as_local_file(*bytes);
  throw Error(ErrorCode::corrupt_data,
              info.path + " was changed while being read" +
                  (local != nullptr ? ": " + local->change() + " when it was opened" : "") +
                  "; open it again when its writer is done");
}

}  // namespace chunkio
