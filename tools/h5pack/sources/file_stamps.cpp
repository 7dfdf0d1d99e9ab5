#include "h5pack/sources/file_stamps.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <numeric>
#include <system_error>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "cli/text_layout.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

/// \throws Error: why `path` has no stamp.
[[noreturn]] void throw_missing(const std::string& path) {
  struct ::stat status {};
  const int number = ::stat(path.c_str(), &status) == 0 ? ENOENT : errno;
  if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    throw Error(ErrorCode::not_found,
                cli::quote(path) + " is a link to nothing readable: remove or mend it");
  }
  throw Error(number == ENOENT ? ErrorCode::not_found : ErrorCode::io_failed,
              "cannot find " + cli::quote(path) + ": " + std::generic_category().message(number));
}

class Digest {
 public:
  Digest() noexcept { XXH3_128bits_reset(&state_); }

  /// With its length, so that no two lists of texts look the same.
  void add(std::string_view text) noexcept {
    add_number(static_cast<std::int64_t>(text.size()));
    XXH3_128bits_update(&state_, text.data(), text.size());
  }
  void add_number(std::int64_t number) noexcept {
    XXH3_128bits_update(&state_, &number, sizeof number);
  }
  [[nodiscard]] std::string text() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return cli::hex(hash.high64) + cli::hex(hash.low64);
  }

 private:
  XXH3_state_t state_{};
};

}  // namespace

void stamp_files(Listing& listing, OnError on_error) {
  for (Split& split : listing.splits) {
    const std::vector<std::string>& files = split.images->files().paths;
    std::vector<cli::FileStamp> stamps(files.size());
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, files.size()), [&](const auto& range) {
      for (std::size_t i = range.begin(); i != range.end(); ++i) {
        cli::StopSignal::check();
        stamps[i] = cli::file_stamp(files[i]);
      }
    });
    const auto missing = std::find_if(stamps.begin(), stamps.end(),
                                      [](const auto& stamp) { return stamp.size < 0; });
    if (on_error == OnError::fail && missing != stamps.end()) {
      throw_missing(files[static_cast<std::size_t>(missing - stamps.begin())]);
    }
    split.images->set_stamps(std::move(stamps));
  }
}

std::string newest_file(const SourceFiles& files) {
  const auto newest = std::max_element(
      files.stamps.begin(), files.stamps.end(),
      [](const cli::FileStamp& a, const cli::FileStamp& b) { return a.mtime_ns < b.mtime_ns; });
  if (newest == files.stamps.end()) return "none";
  const auto seconds = static_cast<std::time_t>(newest->mtime_ns / 1'000'000'000);
  std::tm parts{};
  std::array<char, 64> time{};
  if (::gmtime_r(&seconds, &parts) != nullptr) {
    std::strftime(time.data(), time.size(), ", changed %Y-%m-%d %H:%M:%S UTC", &parts);
  }
  const auto index = static_cast<std::size_t>(newest - files.stamps.begin());
  return files.paths[index] + time.data();
}

std::int64_t files_bytes(const SourceFiles& files) {
  return std::accumulate(files.stamps.begin(), files.stamps.end(), std::int64_t{0},
                         [](std::int64_t sum, const cli::FileStamp& stamp) {
                           return sum + std::max<std::int64_t>(stamp.size, 0);
                         });
}

std::string files_digest(const SourceFiles& files) {
  Digest digest;
  for (std::size_t i = 0; i < files.paths.size(); ++i) {
    digest.add(files.paths[i]);
    digest.add_number(files.stamps[i].size);
    digest.add_number(files.stamps[i].mtime_ns);
  }
  return digest.text();
}

std::string names_digest(const std::vector<std::string>& files) {
  std::size_t common = files.empty() ? 0 : files.front().rfind('/') + 1;  // npos: 0
  for (const std::string& file : files) {
    const auto end = std::mismatch(file.begin(), file.end(), files.front().begin(),
                                   files.front().begin() + static_cast<std::ptrdiff_t>(common));
    const auto same = static_cast<std::size_t>(end.first - file.begin());
    if (same < common) common = files.front().substr(0, same).rfind('/') + 1;
  }
  Digest digest;
  for (const std::string& file : files) digest.add(std::string_view(file).substr(common));
  return digest.text();
}

std::string text_digest(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.text();
}

std::string fields_digest(const Listing& listing, const Split& split) {
  Digest digest;
  for (const auto* names : {&listing.class_names, &listing.attribute_names}) {
    digest.add_number(static_cast<std::int64_t>(names->size()));
    for (const std::string& name : *names) digest.add(name);
  }
  for (const chunkio::FieldData& field : split.fields) {
    digest.add(field.info.name);
    digest.add(to_string(field.info.dtype));
    digest.add(field.info.row_shape.to_string());
    digest.add({reinterpret_cast<const char*>(field.values.data()), field.values.size()});
  }
  return digest.text();
}

std::string file_identity(const chunkio::DatasetInfo& info) {
  if (!info.uuid.empty()) return "uuid " + info.uuid;
  std::string text;
  for (const chunkio::ShardFile& shard : info.shards) {
    const cli::FileStamp stamp = cli::file_stamp(shard.path);
    text += std::to_string(stamp.size) + " " + std::to_string(stamp.mtime_ns) + "\n";
  }
  if (!text.empty()) return "files " + text_digest(text);
  const cli::FileStamp stamp = cli::file_stamp(info.path);
  return std::to_string(stamp.size) + " bytes, changed at " + std::to_string(stamp.mtime_ns);
}

}  // namespace h5pack
