#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "base/positional_io.hpp"
#include "base/shard_names.hpp"
#include "io/object_address.hpp"
#include "io/remote_file.hpp"
#include "io/remote_index.hpp"
#include "write/partial_file.hpp"

namespace chunkio {
namespace {

/// Reads what reading any row needs to know of each array.
void read_first_row(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  if (dataset.size() == 0) return;
  std::vector<FieldInfo> arrays = info.fields;
  if (info.sparse) {
    (void)dataset.read_sparse(0, 1);
  } else if (info.encoded) {
    (void)dataset.read_encoded(0);
  } else {
    arrays.push_back(info.leading);
  }
  for (const FieldInfo& array : arrays) {
    std::vector<std::byte> row(Dataset::row_bytes(array));
    dataset.read_field(array.name, 0, 1, row);
  }
}

}  // namespace

std::int64_t save_remote_index(const std::string& path, const std::string& output,
                               const OpenOptions& options, bool overwrite) {
  if (!io::is_remote(path)) {
    throw Error(ErrorCode::invalid_argument,
                path + " is a local file, and opens without an index; name https:// or s3://");
  }
  write::check_target(output, overwrite);
  auto file = write::PartialFile::begin(output, {.overwrite = overwrite});
  OpenOptions open = options;
  open.remote.index.clear();
  const auto pattern = base::ShardPattern::parse(path);
  const auto paths = pattern ? pattern->files() : std::vector<std::string>{path};
  std::vector<io::IndexedObject> objects;
  for (auto& source : io::open_sources(paths, open.remote)) {
    const auto remote = std::dynamic_pointer_cast<const io::RemoteFile>(std::move(source));
    const auto recording = std::make_shared<io::RecordingSource>(remote);
    read_first_row(Dataset::open(recording, open));
    objects.push_back({remote->object_version(), recording->take_parts()});
  }
  const std::vector<std::byte> bytes = io::encode_index(std::move(objects));
  base::write_at(file.fd(), 0, bytes, file.path());
  file.sync();
  file.publish(output, overwrite);
  write::sync_published(output);
  return std::ssize(bytes);
}

}  // namespace chunkio
