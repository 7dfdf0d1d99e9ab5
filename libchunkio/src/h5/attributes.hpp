/// Attributes of an HDF5 object, read and written.
///
/// File contents are untrusted: sizes are checked before memory is taken. All functions are called
/// while Library::lock() is held. `path` is the file's name, for messages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "h5/schema.hpp"

namespace chunkio::h5 {

/// Reads attributes of one object.
class AttributeReader {
 public:
  /// \param object_name  for messages: "images", or "the root group".
  AttributeReader(hid_t object, std::string object_name, std::string path);

  /// A string, fixed or of variable length, trailing zeros removed; absent if there is no such
  /// attribute.
  /// \throws Error corrupt_data if it is something else or longer than kMaxTextBytes.
  [[nodiscard]] std::optional<std::string> text(const char* name) const;
  /// An array of strings.
  /// \throws Error corrupt_data: no strings, more than `most` of them, or too long.
  [[nodiscard]] std::optional<std::vector<std::string>> texts(
      const char* name, std::int64_t most = kMaxEntries) const;
  /// Numbers, converted to T (int64, uint64 or double); a scalar is one number.
  /// \throws Error corrupt_data: not numeric, or not as many as expected.
  template <class T>
  [[nodiscard]] std::optional<std::vector<T>> numbers(const char* name, std::int64_t count) const;
  /// \param most  how many there may be. \throws as numbers().
  template <class T>
  [[nodiscard]] std::optional<std::vector<T>> up_to(std::int64_t most, const char* name) const;

  /// "attribute NAME of OBJECT in PATH WHY", corrupt_data.
  [[nodiscard]] Error corrupt(const char* name, const std::string& why) const;

 private:
  hid_t object_;
  std::string object_name_;
  std::string path_;
};

/// Strings are stored with a fixed length, UTF-8, padded with zeros, since variable-length strings
/// need a global heap that nothing checksums.
/// \throws Error hdf5_failed.
void write_text(hid_t object, const char* name, const std::string& text, const std::string& path);
void write_texts(hid_t object, const char* name, std::span<const std::string> texts,
                 const std::string& path);
/// T is int64, uint64 or double.
/// \throws Error hdf5_failed.
template <class T>
void write_number(hid_t object, const char* name, T value, const std::string& path);
template <class T>
void write_numbers(hid_t object, const char* name, std::span<const T> values,
                   const std::string& path);

}  // namespace chunkio::h5
