#include "io/range_reader.hpp"

#include <algorithm>

#include "base/trace.hpp"

namespace chunkio::io {

std::size_t RangeReader::scratch_bytes(std::int64_t size) const noexcept {
  return static_cast<std::size_t>(block_bytes_ > 1 ? size + 2 * block_bytes_ : size);
}

std::span<std::byte> RangeReader::read(const ByteRange& range, std::span<std::byte> scratch,
                                       const std::stop_token& stop, ReadCost& cost) const {
  const base::TraceRange trace(base::Stage::read);
  const std::int64_t begin = range.begin / block_bytes_ * block_bytes_;
  const std::int64_t last_block = (range.end + block_bytes_ - 1) / block_bytes_ * block_bytes_;
  const std::int64_t end = std::min(last_block, std::max(range.end, source_->size()));
  const ReadTime time =
      source_->read_at(begin, scratch.first(static_cast<std::size_t>(end - begin)), stop);
  cost.bytes_read += end - begin;
  cost.read_seconds += time.waited_seconds;
  cost.copy_seconds += time.copied_seconds;
  return scratch.subspan(static_cast<std::size_t>(range.begin - begin),
                         static_cast<std::size_t>(range.end - range.begin));
}

}  // namespace chunkio::io
