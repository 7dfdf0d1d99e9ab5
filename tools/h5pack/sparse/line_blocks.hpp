/// A text cut into blocks of whole lines, so that several threads can parse it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "h5pack/sparse/byte_stream.hpp"

namespace h5pack {

struct LineBlock {
  std::string text = {};
  std::int64_t first_line = 1;  ///< Its number in the file.
};

class LineBlocks {
 public:
  /// \param quotes  whether lines end inside quotes, as in CSV. Keeps a reference to `stream`.
  LineBlocks(ByteStream& stream, bool quotes) : stream_(stream), quotes_(quotes) {}

  /// The next block; absent at the end. Blocks on I/O.
  /// \throws Error corrupt_data: a line of more than 16 MiB; as ByteStream::read().
  [[nodiscard]] std::optional<LineBlock> next();

 private:
  ByteStream& stream_;
  bool quotes_;
  std::string rest_;  // Of a line that is not complete.
  std::int64_t line_ = 1;
  bool ended_ = false;
};

}  // namespace h5pack
