#include "write/journal.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <string_view>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/digest.hpp"

namespace chunkio::write {
namespace {

// On-disk values: never change.
constexpr std::string_view kMagic = "chunkioJ";
constexpr std::uint32_t kVersion = 2;
/// Kinds of records.
constexpr std::uint32_t kChunk = 1;
constexpr std::uint32_t kSaved = 2;
constexpr std::uint32_t kSavedEnd = 3;

constexpr std::int64_t kDigestBytes = sizeof(std::uint64_t);
/// Of a chunk record, before its note: chunk, rows, digest.
constexpr std::int64_t kChunkValues = 3 * 8;
/// Magic, version, size of the body.
constexpr std::int64_t kHeaderStart = 8 + 4 + 8;
/// Kind, size of the body.
constexpr std::int64_t kRecordStart = 4 + 8;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;
/// Descriptions are far shorter; what claims more is no journal.
constexpr std::int64_t kMaxHeaderBytes = std::int64_t{1} << 28;

static_assert(std::endian::native == std::endian::little, "journals are little-endian");

/// Bytes, one value behind the other.
class Packer {
 public:
  template <std::integral T>
  Packer& add(T value) {
    return add(std::as_bytes(std::span(&value, 1)));
  }
  Packer& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  Packer& add(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Takes values off the front of `bytes`, which holds them.
template <class T>
T take(std::span<const std::byte>& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(value));
  bytes = bytes.subspan(sizeof(value));
  return value;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The digest of a record starts with what belongs to its place, so that neither a record of an
/// older journal nor one from elsewhere in this one can pass for it.
base::RunningDigest record_digest(std::uint64_t header_digest, std::int64_t position) {
  base::RunningDigest digest;
  digest.add(std::as_bytes(std::span(&header_digest, 1)));
  digest.add(std::as_bytes(std::span(&position, 1)));
  return digest;
}

void add_record(Packer& out, std::uint64_t header_digest, std::int64_t position, std::uint32_t kind,
                std::span<const std::byte> body) {
  const std::size_t first = out.bytes().size();
  out.add(kind).add(static_cast<std::uint64_t>(body.size())).add(body);
  auto digest = record_digest(header_digest, position);
  digest.add(out.bytes().subspan(first));
  out.add(digest.value());
}

std::vector<std::byte> read_bytes(const PartialFile& file, std::int64_t offset,
                                  std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  base::read_at(file.fd(), offset, bytes, file.path());
  return bytes;
}

template <class T>
T read_value(const PartialFile& file, std::int64_t offset) {
  T value{};
  base::read_at(file.fd(), offset, std::as_writable_bytes(std::span(&value, 1)), file.path());
  return value;
}

}  // namespace

Journal Journal::create(const std::string& path, const JournalHeader& header) {
  Journal journal(PartialFile::create(path, OwnerLock::exclusive));
  Packer body;
  body.add(header.first_chunk_offset)
      .add(header.chunk_bytes)
      .add(header.num_chunks)
      .add(header.file_bytes)
      .add(header.structure_digest)
      .add(header.run);
  Packer bytes;
  bytes.add(kMagic)
      .add(kVersion)
      .add(static_cast<std::uint64_t>(body.bytes().size()))
      .add(body.bytes());
  journal.header_ = header;
  journal.header_digest_ = base::digest(bytes.bytes());
  bytes.add(journal.header_digest_);
  base::write_at(journal.file_.fd(), 0, bytes.bytes(), path);
  journal.end_ = static_cast<std::int64_t>(bytes.bytes().size());
  journal.file_.sync();
  return journal;
}

std::optional<Journal> Journal::take_up(const std::string& path) {
  auto file = PartialFile::take_up(path, OwnerLock::exclusive);
  if (!file) return std::nullopt;
  Journal journal(std::move(*file));
  if (!journal.read_header()) return std::nullopt;
  journal.read_records();
  return journal;
}

/// \returns false if it is not whole.
bool Journal::read_header() {
  const std::int64_t size = file_.size();
  constexpr std::int64_t kFixed = 5 * 8;
  if (size < kHeaderStart) return false;
  const std::vector<std::byte> start = read_bytes(file_, 0, kHeaderStart);
  std::span<const std::byte> rest = start;
  if (text_of(rest.first(kMagic.size())) != kMagic) return false;
  rest = rest.subspan(kMagic.size());
  const auto version = take<std::uint32_t>(rest);
  // A disk that lost power may have kept the length of the file and not its content.
  if (version == 0) return false;
  if (version != kVersion) {
    throw Error(ErrorCode::unsupported,
                file_.path() + " is of version " + std::to_string(version) +
                    ", which this version of the library does not read; go on with the one that "
                    "wrote it, or set overwrite to start again",
                "overwrite");
  }
  const auto body_bytes = take<std::uint64_t>(rest);
  if (std::cmp_less(body_bytes, kFixed) || std::cmp_greater(body_bytes, kMaxHeaderBytes)) {
    return false;
  }
  const std::int64_t digest_offset = kHeaderStart + static_cast<std::int64_t>(body_bytes);
  if (size - kDigestBytes < digest_offset) return false;
  const std::vector<std::byte> bytes = read_bytes(file_, 0, digest_offset);
  header_digest_ = base::digest(bytes);
  if (read_value<std::uint64_t>(file_, digest_offset) != header_digest_) return false;

  std::span<const std::byte> body = std::span(bytes).subspan(kHeaderStart);
  header_.first_chunk_offset = take<std::int64_t>(body);
  header_.chunk_bytes = take<std::int64_t>(body);
  header_.num_chunks = take<std::int64_t>(body);
  header_.file_bytes = take<std::int64_t>(body);
  header_.structure_digest = take<std::uint64_t>(body);
  header_.run = text_of(body);
  end_ = digest_offset + kDigestBytes;
  return true;
}

/// Reads up to the first record that is not whole. `end_` stays behind the last one of a chunk.
void Journal::read_records() {
  const std::int64_t size = file_.size();
  std::vector<SavedBytes> saved;
  std::vector<std::byte> piece;
  for (std::int64_t position = end_; size - position >= kRecordStart + kDigestBytes;) {
    const auto start = read_bytes(file_, position, kRecordStart);
    std::span<const std::byte> rest = start;
    const auto kind = take<std::uint32_t>(rest);
    const auto claimed = take<std::uint64_t>(rest);
    if (std::cmp_greater(claimed, size - position - kRecordStart - kDigestBytes)) return;
    const auto body_bytes = static_cast<std::int64_t>(claimed);
    const std::int64_t body_offset = position + kRecordStart;
    if (kind == kChunk && body_bytes > kChunkValues + kMaxNoteBytes) return;

    // In pieces: saved bytes may be many. Only chunk records are wanted in memory.
    auto digest = record_digest(header_digest_, position);
    digest.add(start);
    std::vector<std::byte> body;
    for (std::int64_t done = 0; done < body_bytes;) {
      piece.resize(std::min(kReadBytes, static_cast<std::size_t>(body_bytes - done)));
      base::read_at(file_.fd(), body_offset + done, piece, file_.path());
      digest.add(piece);
      if (kind == kChunk) body.insert(body.end(), piece.begin(), piece.end());
      done += static_cast<std::int64_t>(piece.size());
    }
    if (read_value<std::uint64_t>(file_, body_offset + body_bytes) != digest.value()) return;
    position = body_offset + body_bytes + kDigestBytes;

    if (kind == kChunk && saved.empty() && body_bytes >= kChunkValues) {
      std::span<const std::byte> values = body;
      ChunkRecord record;
      record.chunk = take<std::int64_t>(values);
      record.num_rows = take<std::int64_t>(values);
      record.digest = take<std::uint64_t>(values);
      record.note = text_of(values);
      chunks_.push_back(std::move(record));
      chunk_begins_.push_back(end_);
      end_ = position;
    } else if (kind == kSaved && body_bytes >= 8) {
      saved.push_back({.file_offset = read_value<std::int64_t>(file_, body_offset),
                       .journal_offset = body_offset + 8,
                       .num_bytes = body_bytes - 8});
    } else if (kind == kSavedEnd) {
      saved_ = std::move(saved);
      return;
    } else {
      return;
    }
  }
}

void Journal::keep_first(std::size_t num_chunks) {
  if (num_chunks < chunk_begins_.size()) end_ = chunk_begins_[num_chunks];
  forget_saved();
}

void Journal::append(std::span<const ChunkRecord> records) {
  // One write for the group: a kill leaves one torn record at most, and no record takes a call.
  Packer group;
  for (const ChunkRecord& record : records) {
    Packer body;
    body.add(record.chunk).add(record.num_rows).add(record.digest).add(record.note);
    const auto position = end_ + static_cast<std::int64_t>(group.bytes().size());
    add_record(group, header_digest_, position, kChunk, body.bytes());
  }
  write(group.bytes());
}

void Journal::append_saved(std::int64_t file_offset, std::span<const std::byte> bytes) {
  Packer body;
  body.add(file_offset).add(bytes);
  Packer record;
  add_record(record, header_digest_, end_, kSaved, body.bytes());
  write(record.bytes());
}

void Journal::append_saved_end() {
  Packer record;
  add_record(record, header_digest_, end_, kSavedEnd, {});
  write(record.bytes());
}

void Journal::write(std::span<const std::byte> records) {
  base::write_at(file_.fd(), end_, records, file_.path());
  end_ += static_cast<std::int64_t>(records.size());
}

void Journal::forget_saved() {
  base::resize_file(file_.fd(), end_, file_.path());
  sync();
  saved_.clear();
  std::vector<std::int64_t>().swap(chunk_begins_);  // `= {}` would keep the memory.
}

}  // namespace chunkio::write
