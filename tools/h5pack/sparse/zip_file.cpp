#include "h5pack/sparse/zip_file.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kEnd64Locator = 0x07064b50;
/// An archive of arrays has a handful.
constexpr std::int64_t kMaxDirectoryBytes = std::int64_t{1} << 20;

using Bytes = std::span<const std::uint8_t>;

std::uint64_t number(Bytes bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{bytes[at + i]} << (8 * i);
  return value;
}

/// Sizes that do not fit 32 bits are in an extra field, in this order.
void read_wide(Bytes extra, std::span<std::uint64_t* const> narrow) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const auto id = number(extra, at, 2);
    const auto size = static_cast<std::size_t>(number(extra, at + 2, 2));
    at += 4;
    if (size > extra.size() - at) return;
    if (id == 1) {
      std::size_t within = at;
      for (std::uint64_t* value : narrow) {
        if (*value != 0xffffffff || within + 8 > at + size) continue;
        *value = number(extra, within, 8);
        within += 8;
      }
    }
    at += size;
  }
}

}  // namespace

ZipFile::ZipFile(const std::string& path) : path_(path), file_(path_) {
  size_ = file_.stamp().size;
  read_directory();
}

Error ZipFile::damaged(const std::string& why) const {
  return Error(ErrorCode::corrupt_data,
               cli::quote(path_) + " is damaged: " + why + "; get the file again");
}

void ZipFile::read_directory() {
  const std::int64_t tail_bytes = std::min<std::int64_t>(size_, 65557 + 20);
  std::vector<std::uint8_t> tail(static_cast<std::size_t>(tail_bytes));
  file_.read_at(size_ - tail_bytes, tail);
  std::optional<std::size_t> end;
  for (std::size_t at = tail.size(); at-- > 0 && !end;) {
    if (at + 22 <= tail.size() && number(tail, at, 4) == kEnd) end = at;
  }
  if (!end) throw damaged("it has no end of a zip file");
  std::uint64_t count = number(tail, *end + 10, 2);
  std::uint64_t bytes = number(tail, *end + 12, 4);
  std::uint64_t offset = number(tail, *end + 16, 4);
  if (*end >= 20 && number(tail, *end - 20, 4) == kEnd64Locator) {
    const std::uint64_t at = number(tail, *end - 20 + 8, 8);
    std::vector<std::uint8_t> end64(56);
    if (at > static_cast<std::uint64_t>(std::max<std::int64_t>(size_ - 56, 0))) {
      throw damaged("its directory lies outside of it");
    }
    file_.read_at(static_cast<std::int64_t>(at), end64);
    if (number(end64, 0, 4) != kEnd64) throw damaged("its directory is not where it says");
    count = number(end64, 32, 8);
    bytes = number(end64, 40, 8);
    offset = number(end64, 48, 8);
  }
  if (bytes > static_cast<std::uint64_t>(kMaxDirectoryBytes) ||
      offset > static_cast<std::uint64_t>(size_) ||
      bytes > static_cast<std::uint64_t>(size_) - offset) {
    throw damaged("its directory lies outside of it, or is larger than 1 MiB");
  }
  std::vector<std::uint8_t> directory(static_cast<std::size_t>(bytes));
  file_.read_at(static_cast<std::int64_t>(offset), directory);
  const Bytes all = directory;
  for (std::size_t at = 0; count > 0; --count) {
    if (at + 46 > all.size() || number(all, at, 4) != kDirectoryEntry) {
      throw damaged("its directory is cut");
    }
    const auto name_bytes = static_cast<std::size_t>(number(all, at + 28, 2));
    const auto extra_bytes = static_cast<std::size_t>(number(all, at + 30, 2));
    const auto comment_bytes = static_cast<std::size_t>(number(all, at + 32, 2));
    if (name_bytes + extra_bytes + comment_bytes > all.size() - at - 46) {
      throw damaged("its directory is cut");
    }
    const std::string name(all.begin() + static_cast<std::ptrdiff_t>(at + 46),
                           all.begin() + static_cast<std::ptrdiff_t>(at + 46 + name_bytes));
    std::uint64_t stored = number(all, at + 20, 4);
    std::uint64_t full = number(all, at + 24, 4);
    std::uint64_t header = number(all, at + 42, 4);
    const std::array<std::uint64_t*, 3> narrow = {&full, &stored, &header};
    read_wide(all.subspan(at + 46 + name_bytes, extra_bytes), narrow);
    const std::uint64_t method = number(all, at + 10, 2);
    if ((number(all, at + 8, 2) & 1U) != 0 || (method != 0 && method != 8)) {
      throw Error(ErrorCode::unsupported, cli::quote(path_) + ": " + cli::quote(name) +
                                              " is encrypted, or compressed otherwise than by "
                                              "deflate; save it with scipy.sparse.save_npz");
    }
    const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (stored > static_cast<std::uint64_t>(size_) || full > most ||
        header > static_cast<std::uint64_t>(size_) || (method == 0 && stored != full)) {
      throw damaged(cli::quote(name) + " has an impossible size");
    }
    entries_[name] = {.header_offset = static_cast<std::int64_t>(header),
                      .stored_bytes = static_cast<std::int64_t>(stored),
                      .bytes = static_cast<std::int64_t>(full),
                      .crc = static_cast<std::uint32_t>(number(all, at + 16, 4)),
                      .deflated = method == 8};
    at += 46 + name_bytes + extra_bytes + comment_bytes;
  }
}

ZipStream::ZipStream(const ZipFile& archive, const std::string& name)
    : archive_(archive), name_(name) {
  const auto found = archive.entries().find(name);
  if (found == archive.entries().end()) throw archive.damaged("it has no " + cli::quote(name));
  entry_ = found->second;
  std::vector<std::uint8_t> header(30);
  const std::int64_t size = archive.file().stamp().size;
  if (entry_.header_offset > size - 30) throw archive.damaged(cli::quote(name) + " lies outside");
  archive.file().read_at(entry_.header_offset, header);
  if (number(header, 0, 4) != kLocalHeader) {
    throw archive.damaged(cli::quote(name) + " is not where its directory says");
  }
  offset_ = entry_.header_offset + 30 + static_cast<std::int64_t>(number(header, 26, 2)) +
            static_cast<std::int64_t>(number(header, 28, 2));
  left_ = entry_.stored_bytes;
  if (offset_ > size - left_) throw archive.damaged(cli::quote(name) + " lies outside");
  // Negative: no header of zlib.
  if (entry_.deflated && ::inflateInit2(&inflater_, -15) != Z_OK) throw std::bad_alloc();
}

ZipStream::~ZipStream() {
  if (entry_.deflated) ::inflateEnd(&inflater_);
}

void ZipStream::read_stored(std::span<std::byte> out) {
  archive_.file().read_at(offset_, {reinterpret_cast<std::uint8_t*>(out.data()), out.size()});
  offset_ += static_cast<std::int64_t>(out.size());
}

void ZipStream::read_deflated(std::span<std::byte> out) {
  while (!out.empty()) {
    if (inflater_.avail_in == 0 && left_ > 0) {
      const auto count = std::min<std::int64_t>(left_, std::ssize(input_));
      archive_.file().read_at(offset_, std::span(input_).first(static_cast<std::size_t>(count)));
      offset_ += count;
      left_ -= count;
      inflater_.next_in = input_.data();
      inflater_.avail_in = static_cast<uInt>(count);
    }
    inflater_.next_out = reinterpret_cast<Bytef*>(out.data());
    inflater_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30));
    const uInt before = inflater_.avail_out;
    const int status = ::inflate(&inflater_, Z_NO_FLUSH);
    const std::size_t count = before - inflater_.avail_out;
    if (count == 0 && status != Z_OK) {
      throw archive_.damaged(cli::quote(name_) + " does not hold the bytes that it says");
    }
    out = out.subspan(count);
  }
}

void ZipStream::read(std::span<std::byte> out) {
  if (!std::in_range<std::int64_t>(out.size()) ||
      static_cast<std::int64_t>(out.size()) > entry_.bytes - done_) {
    throw archive_.damaged(cli::quote(name_) + " ends early");
  }
  if (entry_.deflated) {
    read_deflated(out);
  } else {
    read_stored(out);
  }
  for (auto rest = out; !rest.empty();) {
    const auto part = rest.first(std::min<std::size_t>(rest.size(), 1U << 30));
    crc_ = static_cast<std::uint32_t>(
        ::crc32(crc_, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size())));
    rest = rest.subspan(part.size());
  }
  done_ += static_cast<std::int64_t>(out.size());
  if (done_ == entry_.bytes && crc_ != entry_.crc) {
    throw archive_.damaged(cli::quote(name_) + " does not match its checksum");
  }
}

}  // namespace h5pack
