#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "base/access.hpp"
#include "h5/dataset_file.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/error_stack.hpp"
#include "h5/link_writer.hpp"
#include "h5/read_rows.hpp"
#include "write/partial_file.hpp"

namespace chunkio {
namespace {

namespace fs = std::filesystem;

/// `file` as seen from `folder`, whatever links lead to either. \throws Error io_failed.
std::string relative_path(const std::string& file, const std::string& folder) {
  try {
    const fs::path path = file;
    const fs::path home =
        fs::canonical(path.has_parent_path() ? path.parent_path() : fs::path("."));
    return (home.lexically_relative(fs::canonical(folder)) / path.filename())
        .lexically_normal()
        .string();
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::io_failed, std::string("cannot find where ") + file + " is from " +
                                          folder + ": " + error.code().message());
  }
}

void check_is_no_shard(const DatasetInfo& info, const std::string& path) {
  struct stat target {};
  if (::stat(path.c_str(), &target) != 0) return;
  for (const ShardFile& shard : info.shards) {
    struct stat status {};
    if (::stat(shard.path.c_str(), &status) != 0 || status.st_dev != target.st_dev ||
        status.st_ino != target.st_ino) {
      continue;
    }
    throw Error(ErrorCode::invalid_argument,
                path + " is one of the files to be linked; choose another name");
  }
}

/// What libhdf5 does not find it delivers as zeros, so the first and last row of each file are
/// compared. \throws Error digest_mismatch.
void check_link(const Dataset& dataset, const std::string& path) {
  const DatasetInfo& info = dataset.info();
  const auto link = h5::open_dataset_file(
      path, {.images = info.leading.name, .allow_external = true}, h5::LinkFiles::opened);
  std::vector<std::byte> there(static_cast<std::size_t>(info.sample_bytes()));
  std::vector<std::byte> here(there.size());
  for (const ShardFile& shard : info.shards) {
    for (const std::int64_t row : {shard.first_row, shard.first_row + shard.num_samples - 1}) {
      dataset.read_field(info.leading.name, row, 1, here);
      h5::read_rows(*link->leading, row, 1, there, path);
      if (here == there) continue;
      throw Error(ErrorCode::digest_mismatch, path + ": row " + std::to_string(row) +
                                                  " is not what " + shard.path +
                                                  " holds; was that file changed meanwhile?");
    }
  }
}

}  // namespace

void link_shards(const Dataset& dataset, const std::string& path, const LinkOptions& options) {
  const DatasetInfo& info = dataset.info();
  if (info.shards.empty()) {
    throw Error(ErrorCode::invalid_argument,
                info.path +
                    " is one file, and needs no link; name several, as in "
                    "'train-*-of-00008.h5'");
  }
  if (info.encoded || info.sparse) {
    throw Error(ErrorCode::unsupported,
                info.path + ": " + h5::printable(info.leading.name) +
                    " is a group, which a link cannot join; programs of this library open '" +
                    info.path + "' itself");
  }
  check_is_no_shard(info, path);
  write::check_target(path, options.overwrite);
  const std::string partial = write::partial_of(path);
  auto file = write::PartialFile::begin(path, {.overwrite = options.overwrite});
  const std::string folder = write::folder_of(path);
  std::vector<h5::LinkedFile> files;
  for (const ShardFile& shard : info.shards) {
    files.push_back({relative_path(shard.path, folder), shard.num_samples});
  }
  h5::write_link(file.fd(), partial, *internal::Access::impl(dataset), files,
                 relative_path(info.path, folder));
  file.sync();
  check_link(dataset, partial);
  file.publish(path, options.overwrite);
  write::sync_folder(folder);
}

}  // namespace chunkio
