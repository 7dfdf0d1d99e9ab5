/// What opening remote files reads, kept in a local file: headers, attributes, and where chunks
/// lie, which is spread over the whole of some files.
///
/// The file is one line of JSON, which names the objects and their versions, and the parts of each
/// object behind it, in the byte order of this machine. An object's parts have a digest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/byte_source.hpp>

#include "io/wrapping_source.hpp"

namespace chunkio::io {

/// A version of a remote object.
struct ObjectVersion {
  std::string name = {};       ///< For messages.
  std::string place = {};      ///< ObjectAddress::place.
  std::string validator = {};  ///< Its entity tag, or the time of its modification.
  std::int64_t bytes = 0;
};

/// ObjectVersion::place as it is written: it may tell more than a name.
[[nodiscard]] std::string place_digest(const std::string& place);

/// Bytes of an object, in any order; they may overlap.
struct ObjectPart {
  std::int64_t offset = 0;
  std::vector<std::byte> bytes = {};
};

/// The parts of one object. Immutable, so thread-safe.
class RemoteIndex {
 public:
  /// Reads the parts of `object` from an index file.
  /// \throws Error not_found, io_failed, corrupt_data (the file is no index, or damaged, or of
  ///         another version of the object), invalid_argument (it has nothing of the object).
  [[nodiscard]] static RemoteIndex load(const std::string& path, const ObjectVersion& object);

  [[nodiscard]] bool holds(const ByteRange& range) const noexcept;
  /// \returns false, and reads nothing, unless it holds all of them.
  [[nodiscard]] bool read(std::int64_t offset, std::span<std::byte> out) const noexcept;

 private:
  /// Bytes of the object that lie at `at` in bytes_.
  struct Part {
    ByteRange range = {};
    std::size_t at = 0;
  };

  /// The part that has all of a range; null if there is none.
  [[nodiscard]] const Part* find(const ByteRange& range) const noexcept;

  std::vector<std::byte> bytes_;
  std::vector<Part> parts_;  // disjoint, not adjacent, ascending
};

/// An object, and what is to be kept of it.
struct IndexedObject {
  ObjectVersion version = {};
  std::vector<ObjectPart> parts = {};
};

/// \returns the bytes of an index file.
[[nodiscard]] std::vector<std::byte> encode_index(std::vector<IndexedObject> objects);

/// Notes what is read of a source in small pieces: what describes a file. Thread-safe.
class RecordingSource final : public WrappingSource {
 public:
  explicit RecordingSource(std::shared_ptr<const ByteSource> source)
      : RecordingSource(std::move(source), std::make_shared<Record>()) {}

  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override;

  /// What was read so far.
  [[nodiscard]] std::vector<ObjectPart> parts() const;

 private:
  struct Record {
    std::mutex mutex;
    std::vector<ObjectPart> parts;
  };

  RecordingSource(std::shared_ptr<const ByteSource> source, std::shared_ptr<Record> record)
      : WrappingSource(std::move(source)), record_(std::move(record)) {}

  std::shared_ptr<Record> record_;
};

}  // namespace chunkio::io
