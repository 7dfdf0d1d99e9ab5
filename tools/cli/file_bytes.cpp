#include "cli/file_bytes.hpp"

#include <algorithm>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace cli {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::int64_t kMaxFileBytes = std::int64_t{2} << 30;

}  // namespace

void FileBytes::read(const std::string& path, const std::optional<FileStamp>& expected) {
  const SourceFile file(path);
  // Whatever happens to a listed file until its last byte is read shows in its status afterwards,
  // so one look is enough: beside opening it, that is what a small file costs most. Without a stamp
  // its size must be known first.
  const FileStamp stamp = expected ? *expected : file.stamp();
  if (stamp.size > kMaxFileBytes) {
    throw Error(ErrorCode::unsupported, quote(path) + " is larger than 2 GiB");
  }
  size_ = static_cast<std::size_t>(stamp.size);
  make_room();
  try {
    file.read_at(0, {data_.get(), size_});
  } catch (const Error&) {
    // What was changed, or is no file any more, says more than that it could not be read.
    if (expected) file.check_unchanged(*expected);
    throw;
  }
  if (expected) file.check_unchanged(*expected);
  if (size_ == 0) {
    throw Error(ErrorCode::corrupt_data, quote(path) + " is empty (0 bytes): remove or replace it");
  }
}

void FileBytes::make_room() {
  if (size_ <= capacity_) return;
  capacity_ = std::max(size_, capacity_ * 2);
  data_ = std::make_unique_for_overwrite<std::uint8_t[]>(capacity_);
}

}  // namespace cli
