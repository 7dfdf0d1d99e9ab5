#include "h5pack/sources/file_identity.hpp"

#include "cli/file_bytes.hpp"
#include "h5pack/sources/file_stamps.hpp"

namespace h5pack {

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
