/// Index files: what opening remote files reads, kept in a local file. That is headers, attributes,
/// and where chunks lie, which some files have spread over all of their bytes.
///
/// An index file begins with a line of JSON for itself and one for each object; the parts of the
/// objects follow, little-endian, with a digest for those of each object. It is as private as the
/// addresses that it is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <chunkio/byte_source.hpp>

namespace chunkio::io {

/// A version of a remote object.
struct ObjectVersion {
  std::string name = {};       ///< For messages.
  std::string place = {};      ///< ObjectAddress::place; written as its digest.
  std::string validator = {};  ///< Its entity tag, or the time of its modification.
  std::int64_t bytes = 0;
};

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

/// \returns the bytes of an index file. \throws Error invalid_argument: too many objects.
[[nodiscard]] std::vector<std::byte> encode_index(std::vector<IndexedObject> objects);

}  // namespace chunkio::io
