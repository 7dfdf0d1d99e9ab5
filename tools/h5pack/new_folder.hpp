/// A folder that appears whole or not at all.
#pragma once

#include <span>
#include <string>

namespace h5pack {

/// Files are written to PATH.partial, which publish() renames to PATH. Destroyed before that, it
/// removes what it wrote.
class NewFolder {
 public:
  /// Makes PATH.partial.
  /// \throws chunkio::Error output_exists (PATH or PATH.partial exists), not_found (no folder to
  /// put
  ///         it in), io_failed, no_space.
  explicit NewFolder(const std::string& path);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder();

  /// Makes the folder `name` in it.
  /// \throws chunkio::Error io_failed, no_space.
  void make_folder(const std::string& name) const;
  /// Writes a file that does not exist yet. Thread-safe for distinct names.
  /// \param name  within the folder, maybe "folder/file".
  /// \throws chunkio::Error io_failed, no_space.
  void write(const std::string& name, std::span<const unsigned char> bytes) const;
  /// Brings everything to disk and gives the folder its name. Blocks on I/O.
  /// \throws chunkio::Error output_exists (PATH appeared meanwhile), io_failed, no_space.
  void publish();

 private:
  std::string path_;
  std::string partial_;
  bool published_ = false;
};

}  // namespace h5pack
